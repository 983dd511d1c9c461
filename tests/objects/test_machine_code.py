"""Loops of this package: compiled in a thread on request, and never without one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from gcspy_compiled import machine_code
from gcspy_compiled.machine_code import Compiled, Loop


def total(values: NDArray[np.int64]) -> int:
    found: int = 0
    for value in values:
        found += value
    return found


@pytest.fixture
def only_one(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """A loop, as if it were the only one of the room."""
    monkeypatch.setattr(machine_code, "_loops", [])
    monkeypatch.setattr(machine_code, "cache_folder", lambda: None)
    loop = Loop(total, "int64(int64[::1])")
    yield loop
    machine_code.forget()


def test_who_looks_once_compiles_only_if_that_takes_long(
    only_one: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(machine_code.VARIABLE)
    begun = threading.Event()
    with machine_code.compile_after(0.05):
        thread = machine_code.CompilingThread(begun.set, "patient")
        late = machine_code.CompilingThread(begun.clear, "not started within")
        thread.start()
        assert not thread.running, "nothing is compiled yet"
    assert begun.wait(60), "the look took longer"
    thread.join(60)
    with machine_code.compile_after(3600):
        pass
    assert late.start() is not None
    late.join(60)
    assert not begun.is_set(), "who does not look once waits for nothing"


def test_a_loop_is_machine_code_once_it_was_wanted(
    only_one: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    monkeypatch.delenv(machine_code.VARIABLE)
    before, thread = only_one.machine, machine_code.want()
    assert before is None
    assert thread is not None
    thread.join()
    assert only_one.machine is not None
    assert only_one.machine(np.arange(5)) == 10
    assert machine_code.want() is None, "nothing new to compile"
    later = Loop(total, "int64(int64[::1])")
    again = machine_code.want()
    assert again is not None
    again.join()
    assert later.machine is not None


def test_where_machine_code_is_not_wanted_nothing_is_compiled(only_one: Loop) -> None:
    assert machine_code.want() is None
    assert not machine_code.compile_all()
    assert only_one.machine is None


def test_without_numba_there_is_none(only_one: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(machine_code.VARIABLE)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not machine_code.compile_all()
    assert only_one.machine is None


class Totals(NamedTuple):
    """What `Compiled` makes of this module."""

    total: Callable[..., int]


def test_code_is_loaded_at_once_if_it_was_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    numba = pytest.importorskip("numba")
    monkeypatch.delenv(machine_code.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(Compiled, "want", lambda _: None)

    def compiled() -> Compiled[Totals]:
        return Compiled(sys.modules[__name__], Totals, {}, {"total": "int64(int64[::1])"})

    assert not compiled().kept()
    assert compiled().load_kept() is None
    assert compiled().load() is not None
    assert compiled().kept()
    loops = compiled().load_kept()
    assert loops is not None
    assert loops.total(np.arange(4)) == 6
    monkeypatch.setenv(machine_code.VARIABLE, "no")
    assert compiled().load_kept() is None
    monkeypatch.delenv(machine_code.VARIABLE)
    source = Path(__file__).stat().st_mtime
    for index in tmp_path.rglob("*.nbi"):
        os.utime(index, (source - 1, source - 1))
    assert not compiled().kept(), "the source is newer"
