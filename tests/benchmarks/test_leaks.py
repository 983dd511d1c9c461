"""Programs that leak: what is stated of them, what is read from an answer, and one of them for real."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benchmarks.leaks.answers import Answer, holder_in, sentence_in
from benchmarks.leaks.leak_programs import LeakingProgram, programs
from benchmarks.leaks.leaks import measure, names
from tests.once import machine_code_allowed

SAID = """\
process 7: resident set 55.9 MiB

What the memory is for
What   Objects  Bytes
Order        9  1 KiB

What holds most of it
Holder           Type  Objects  Retained
__main__.OTHER   list        2  2 MiB

The resident set grew by 9 MiB in 15 s: mostly Order (99 %). Held by __main__.HELD['a  b'] (99 %).

What grew most
What   Objects  Bytes  Grew  Came  Went
Order        9  1 KiB

What holds it
Holder                 Type  Objects  Retained   Grew
__main__.HELD['a  b']  list       10     9 MiB  9 MiB
__main__.OTHER         list        2     2 MiB  1 KiB

2 objects
"""


def program(holder: str) -> LeakingProgram:
    return LeakingProgram("one", "standard", Path("one.py"), "a list", re.compile(holder))


def test_the_first_holder_and_the_sentence_are_read_from_the_text() -> None:
    lines = SAID.splitlines()
    assert holder_in(lines) == "__main__.HELD['a  b']"
    assert sentence_in(lines).startswith("The resident set grew by 9 MiB")
    assert sentence_in(lines).endswith("(99 %).")
    without = lines[: lines.index("What grew most")]
    assert (holder_in(without), sentence_in(without)) == ("", "")


@pytest.mark.parametrize(
    ("holder", "said", "expected"),
    [
        ("a.B", "Held by a.B (9 %).", True),
        ("a.B", "Held by a.C (9 %).", False),
        ("a.B.c", "Held by a.B.c (9 %).", False),
        ("", "", False),
    ],
)
def test_only_the_right_holder_that_the_sentence_names_counts(
    holder: str, said: str, expected: bool
) -> None:
    assert names(program(r"a\.B"), Answer(1.0, 2.0, said, holder, "")) is expected


def test_each_program_states_its_cause_and_its_holder() -> None:
    found = programs()
    groups = [each.group for each in found]
    assert len(found) == len({each.name for each in found})
    assert groups.count("standard") >= 9
    assert groups.count("pypi") >= 6
    assert groups.count("java") >= 4
    assert all(each.cause and each.holder.pattern for each in found)
    files = Path(__file__).parents[2].glob("benchmarks/leaks/programs/[!_]*/[!_]*.py")
    assert {each.path for each in found if each.group != "java"} == set(files)


@pytest.mark.timeout(300)
def test_the_holder_in_a_real_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    machine_code_allowed(monkeypatch)
    (cache,) = (each for each in programs() if each.name == "dict_cache")
    row = measure(cache, sys.executable, ["--over", "1"])
    assert row.named, row
    assert row.holder == "__main__.PAGES"
    assert 0 < row.first_secs < row.whole_secs
