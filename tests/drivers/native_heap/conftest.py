"""Fixtures of the tests of native heaps: a program of this machine's glibc."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.drivers.native_heap.malloc_program import (
    MallocProgram,
    machine_program,
    remove_programs,
)

StartMalloc = Callable[..., MallocProgram]


@pytest.fixture(scope="session", autouse=True)
def _removed_programs() -> Iterator[None]:
    yield
    remove_programs()


@pytest.fixture
def malloc_program() -> Iterator[StartMalloc]:
    """Return a function that starts a program; see `MallocProgram`."""
    started: list[MallocProgram] = []

    def start(
        kind: str = "dynamic",
        *,
        threads: int = 3,
        size_bytes: int = 6_000_000,
        churns: bool = False,
        environment: dict[str, str] | None = None,
        command: list[str] | None = None,
    ) -> MallocProgram:
        program = MallocProgram(
            command or [str(machine_program(kind))], threads, size_bytes, churns, environment or {}
        )
        started.append(program)
        return program

    yield start
    for program in started:
        program.end()
