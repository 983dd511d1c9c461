"""Found defects stay fixed: the stored inputs, and some mutations of them, break no rule of any decoder."""

from __future__ import annotations

import pytest

from tests.fuzz.engine import Broken, Fuzzer, load, shortest, watch
from tests.fuzz.targets import CORPUS, DECODERS

MUTATIONS = 60
"""Of each decoder: a second or two."""


@pytest.mark.parametrize("name", DECODERS)
def test_no_input_breaks_a_rule(name: str) -> None:
    decoder = DECODERS[name]
    fuzzer = Fuzzer(decoder.run, [*decoder.seeds(), *load(CORPUS / name)], seed=1)
    assert len(fuzzer.edges) > 15
    for _ in range(MUTATIONS):
        fuzzer.step()


@pytest.mark.parametrize("name", DECODERS)
def test_inputs_are_kept_and_small(name: str) -> None:
    kept = load(CORPUS / name)
    assert kept
    assert max(map(len, kept)) <= 4096
    assert len(kept) <= 60


def test_a_foreign_error_a_broken_promise_and_too_much_work_are_found() -> None:
    from gcspy_protocol.expression import parse

    def endless(data: bytes) -> None:
        while True:
            parse("a + b")

    for run, about in (
        (lambda data: data[9], "IndexError"),
        (lambda data: int(data, data), "TypeError"),
        (endless, "lines ran"),
    ):
        with pytest.raises(Broken, match=about) as caught:
            watch(run, b"abc")
        assert caught.value.data == b"abc"


def test_mutations_are_guided_by_what_they_reach_and_repeat_themselves() -> None:
    """From one name: what reaches more of the parser is kept and mutated again."""
    decoder = DECODERS["expression"]
    runs = []
    for _ in range(2):
        fuzzer = Fuzzer(decoder.run, [b"a"], seed=3)
        begun = len(fuzzer.edges)
        for _ in range(300):
            fuzzer.step()
        runs.append((fuzzer.kept, fuzzer.executions, len(fuzzer.edges)))
        assert len(fuzzer.edges) > begun + 20
        assert len(fuzzer.kept) > 5
    assert runs[0] == runs[1]
    needed = shortest(decoder.run, runs[0][0])
    assert len(needed) <= len(runs[0][0])
    reached = set().union(*(watch(decoder.run, data).edges for data in needed))
    assert len(reached) == runs[0][2]
