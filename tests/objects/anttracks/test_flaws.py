"""A symbols file that contradicts itself is reported; the VM's own output never is."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from gcspy_objects.anttracks.flaws import find_flaws
from gcspy_objects.anttracks.symbols import read_symbols
from gcspy_protocol.errors import TraceError

from benchmarks.targets.anttracks_writer import SymbolsWriter
from tests.objects.anttracks.samples import SAMPLES, sample

TEXTS = ("Ljava.lang.String;", "text", 2)
ABOVE = [("I", "x", 2), ("Ljava.lang.String;", "name", 0x12)]


def sound() -> SymbolsWriter:
    made = SymbolsWriter()
    made.cause(0, "System.gc()")
    made.cause(1, "Allocation Failure")
    made.vm_site(1, "VM internal")
    made.type(1, "[I", 16 << 8 | 4)
    made.type(2, "[Ljava/lang/Object;", 16 << 8 | 4)
    made.type(3, "Lapp/Above;", 24, ABOVE)
    made.type(4, "Lapp/Below;", 32, [("J", "y", 2)])
    made.records += bytes([57]) + made.fields(ABOVE)
    made.site(20, [("app.Below.make()Lapp/Below;", 7), ("app.Above.run()V", -1)], 4)
    made.site(0x80000D, [("$$Recursion.repeat_2_last_frames_n_times()V", 90_000)], 1)
    made.site(0x80000E, [("app.Above.run()V", 9)], 2)
    return made


def flaws(made: SymbolsWriter) -> list[str]:
    data = made.data()
    read_symbols(data, "symbols")
    return [str(flaw) for flaw in find_flaws(data, "symbols") if flaw.certain]


def doubts(made: SymbolsWriter) -> list[str]:
    return [str(flaw) for flaw in find_flaws(made.data(), "symbols") if not flaw.certain]


def test_what_is_sound_has_none() -> None:
    assert find_flaws(sound().data(), "symbols") == []


@pytest.mark.parametrize("name", SAMPLES)
def test_what_the_vm_wrote_has_none(name: str) -> None:
    assert find_flaws((sample(name) / "symbols").read_bytes(), "symbols") == []


def test_records_that_are_repeated_say_the_same() -> None:
    made = sound()
    made.type(3, "Lapp/Above;", 24)
    made.cause(1, "Allocation Failure")
    made.site(0x80000E, [("app.Above.run()V", 9)], 2)
    assert flaws(made) == []
    made.cause(1, "Allocation Fallure")
    made.site(0x80000E, [("app.Above.run()V", 10)], 2)
    made.type(2, "[Ljava/lang/String;", 16 << 8 | 4)
    found = flaws(made)
    assert len(found) == 3
    assert "cause 1 to be what the record at byte" in found[0]
    assert "Allocation Failure; found Allocation Fallure" in found[0]
    assert "site 8388622 to be" in found[1]
    assert "type 2 to be" in found[2]


@pytest.mark.parametrize(
    ("descriptor", "size", "about"),
    [
        ("Lapp/Other;", 25, "a multiple of 8"),
        ("Lapp/Other;", 8, "a multiple of 8 from 16 on"),
        ("Lapp//Other;", 16, "each part of it with a name"),
        ("Lapp/Ot\x01her;", 16, "without control characters"),
        ("[I", 16 << 8 | 2, "elements of 4 for [I; found 16 and 2"),
        ("[J", 17 << 8 | 8, "a header of 16 or 20 or 24 bytes"),
        ("[[I", 16 << 8 | 1, "elements of 4 or 8 for [[I"),
    ],
)
def test_sizes_and_names_of_types(descriptor: str, size: int, about: str) -> None:
    made = sound()
    made.type(5, descriptor, size)
    (found,) = flaws(made)
    assert about in found


@pytest.mark.parametrize("size", [16, 56, 240])
def test_an_instance_has_the_size_of_its_fields(size: int) -> None:
    made = sound()
    made.type(5, "Lapp/Other;", size, [("J", "a", 2), ("I", "b", 2)])
    (found,) = flaws(made)
    assert f"24 to 48 bytes for an instance of Lapp/Other;, by its fields; found {size}" in found


@pytest.mark.parametrize("size", [24, 32, 24 + 256])
def test_an_instance_may_be_padded_and_contended(size: int) -> None:
    made = sound()
    made.type(5, "Lapp/Other;", size, [("J", "a", 2), ("I", "b", 2), ("J", "STATIC", 8)])
    assert flaws(made) == []


def test_fields() -> None:
    made = sound()
    made.type(5, "Lapp/Other;", 24, [("I", "a", 3), ("I", "b", 0x100), ("I", "c;d", 2)])
    found = flaws(made)
    assert [one.partition("; found ")[2] for one in found] == ["0x3", "0x100", "'c;d'"]


def test_the_fields_of_a_superclass_are_those_that_it_has_itself() -> None:
    made = sound()
    made.type(5, "Lapp/Other;", 32, [])
    made.records += bytes([57]) + made.fields([("I", "z", 2), *ABOVE[1:]])
    (found,) = flaws(made)
    assert "the fields of a superclass of Lapp/Other; as it has them itself; found others" in found


def test_sites() -> None:
    made = sound()
    made.site(21, [("app.Below.make()Lapp/Below;", 70_000)], 9)
    made.vm_site(2, "")
    found = flaws(made)
    assert "byte code from -1 to 65535; found 70000" in found[0]
    assert "the name of a site without control characters" in found[1]
    assert "a type that site 21 allocates; found type 9, which there is not" in found[2]


def test_flags_and_whether_a_cause_is_common() -> None:
    made = sound()
    made.flags = 16
    made.records += bytes([17, 2, 0, 0, 0]) + b"Ergonomics\0\2"
    found = flaws(made)
    assert "0, or 1 for a common cause; found 2" in found[0]
    assert "no flags but 0x7; found 0x10" in found[1]


def test_what_nothing_refers_to_is_unusual_and_no_contradiction() -> None:
    made = sound()
    made.type(6, "Lapp/Other;", 16)
    made.cause(3, "Ergonomics")
    made.site(0x800010, [("app.Lost.run()V", 9)], 1)
    assert flaws(made) == []
    found = doubts(made)
    assert [one.partition("expected ")[2] for one in found] == [
        "type 5, as there are larger numbers; found none",
        "cause 2, as there are larger numbers; found none",
        "site 8388623, as there are larger numbers; found none",
        "app.Lost, the class of a method, among the types; found none",
    ]


def test_a_number_far_from_the_others_costs_no_memory() -> None:
    """All numbers up to 4,294,967,295 would be 100 GB of a set."""
    made = sound()
    made.cause(0xFFFFFFFF, "Ergonomics")
    assert len(doubts(made)) == 100


def test_a_file_full_of_contradictions_is_told_in_a_hundred() -> None:
    made = sound()
    for number in range(5, 400):
        made.type(number, "Lapp/Other;", 17)
    assert len(flaws(made)) == 100


def test_flipped_bits_of_a_real_file_are_told_where_they_are_in_no_name() -> None:
    """Six bytes of seven are letters of names, of which only those that are written twice have a witness."""
    whole = (sample("list") / "symbols").read_bytes()
    chance, said, letters = random.Random(5), Counter[str](), 0
    for _ in range(40):
        at, data = chance.randrange(180, len(whole)), bytearray(whole)
        data[at] ^= 1 << chance.randrange(8)
        try:
            read_symbols(bytes(data), "symbols")
        except TraceError:
            said["error"] += 1
            continue
        told = "flaw" if find_flaws(bytes(data), "symbols") else "sound"
        said[told] += 1
        letters += told == "sound" and chr(whole[at]).isascii() and chr(whole[at]).isprintable()
    assert said["error"] + said["flaw"] >= 10, said
    assert letters >= 0.8 * said["sound"], said
