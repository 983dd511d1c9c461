"""`loop`: functions over arrays that run as they are written, and as machine code once that is there.

Collectors are loops over words, and are read more often than they are run: so they are written as plain loops in plain functions. Run as
they are, they manage some hundred thousand objects a second; compiled by numba, where it is installed, a hundred times as many. Both do
exactly the same, so it never matters when one takes the other's place.

A loop may take arrays of whole numbers (`Words`, `Bytes`) and `int`; it may use arithmetic,
indexing, ``if``, ``while``, ``for`` over ``range``, names of whole numbers in its module, and other
loops. Its signature is read from its annotations. It returns each changed value that is not an
element of an array, or keeps it in an array of one element.

Run as written, each array is handed over as a memoryview: indexing one gives Python's own int, in half the time that numpy needs for one of its.

Compiling takes seconds, so a thread does it (`want`), and the program does not wait.
`gcspy_compiled.machine_code` decides where compiled code is kept. The module does not depend on
heaps.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar

import numpy as np
from gcspy_protocol.errors import LocalProtocolError
from numpy.typing import NDArray

from gcspy_compiled import machine_code
from gcspy_compiled.machine_code import CompilingThread, compile_with, find_compiler

__all__ = [
    "Bytes",
    "SimulatorLoop",
    "Words",
    "as_machine_code",
    "as_written",
    "available",
    "compile_all",
    "forget",
    "loop",
    "want",
]

Words: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

P = ParamSpec("P")
R = TypeVar("R")

_TYPES: Final = {
    "Words": "int64[::1]",
    "Bytes": "uint8[::1]",
    "int": "int64",
    "bool": "boolean",
    "None": "void",
    "tuple[int, int]": "UniTuple(int64, 2)",
}
_state = SimpleNamespace(machine=True)
_loops: list[SimulatorLoop[Any, Any]] = []


class SimulatorLoop(Generic[P, R]):
    """A function that is called like the one that was written, and is the compiled one once there is one.

    Attributes:
        written: The Python function.
    """

    def __init__(self, written: Callable[P, R]) -> None:
        functools.update_wrapper(self, written)
        self.written = written
        self._plain: Callable[..., R] | None = None
        self._machine: Callable[..., R] | None = None
        _loops.append(self)

    def __call__(self, *arguments: P.args, **_: P.kwargs) -> R:
        """Run the compiled function if it exists and is requested, otherwise the Python function."""
        if self._machine is not None and _state.machine:
            return self._machine(*arguments)
        plain = self._plain or self._as_written()
        return plain(*[one.data if type(one) is np.ndarray else one for one in arguments])

    @property
    def signature(self) -> str:
        """The signature for numba, such as ``int64(int64[::1], int64)``."""
        notes = dict(self.written.__annotations__)
        try:
            result = _TYPES[notes.pop("return")]
            return f"{result}({', '.join(_TYPES[one] for one in notes.values())})"
        except KeyError as error:
            name = self.written.__qualname__
            raise LocalProtocolError(
                f"loop {name}: {error} is not a type of {', '.join(_TYPES)}: a loop takes these only"
            ) from None

    @property
    def used(self) -> dict[str, SimulatorLoop[Any, Any]]:
        """The loops that it calls, by the name by which it does."""
        code, space = self._parts()
        return {
            name: space[name]
            for name in code.co_names
            if isinstance(space.get(name), SimulatorLoop)
        }

    @property
    def fingerprint(self) -> str:
        """A digest of the loop and of the loops and numbers that it uses: code compiled from other versions is not used for it."""
        code, space = self._parts()
        numbers = [
            (name, space[name]) for name in code.co_names if isinstance(space.get(name), int)
        ]
        inner = [one.fingerprint for one in self.used.values()]
        what = (
            self.signature,
            code.co_code,
            code.co_names,
            [one for one in code.co_consts if not isinstance(one, CodeType)],
            numbers,
            inner,
        )
        return hashlib.blake2b(repr(what).encode(), digest_size=8).hexdigest()

    def compile(self, njit: Callable[..., Any], *, keep: bool) -> Callable[..., R]:
        """Have numba's decorator compile it, after those that it uses; `keep` says whether numba may write down what it compiled."""
        if self._machine is None:
            inner = {name: one.compile(njit, keep=keep) for name, one in self.used.items()}
            function = self._copy(inner)
            # numba finds its cached code by this name, and does not check whether the called
            # functions are still the same.
            function.__qualname__ = f"{self.written.__qualname__}_{self.fingerprint}"
            self._machine = compile_with(njit, self.signature, function, keep=keep)
        return self._machine

    def forget(self) -> None:
        """Have no compiled function."""
        self._machine = None

    def _as_written(self) -> Callable[..., R]:
        """Return the function as written, which calls others as they are written, without this class in between."""
        if self._plain is None:
            self._plain = self._copy({name: one._as_written() for name, one in self.used.items()})
        return self._plain

    def _copy(self, inner: dict[str, Callable[..., Any]]) -> FunctionType:
        code, space = self._parts()
        copy = FunctionType(code, {**space, **inner}, self.written.__name__)
        copy.__module__ = self.written.__module__
        return copy

    def _parts(self) -> tuple[CodeType, dict[str, Any]]:
        function: Any = self.written
        return function.__code__, function.__globals__


def loop(written: Callable[P, R]) -> SimulatorLoop[P, R]:
    """Make a function over arrays a loop: see the top of this module for what it may do."""
    return SimulatorLoop(written)


def available() -> bool:
    """Return whether machine code is requested and numba is installed; loads numba."""
    return find_compiler() is not None


def compile_all() -> bool:
    """Compile every loop of every imported module, or load its cached code; return False where that is impossible. Takes seconds."""
    return machine_code.compile_all(_loops)


def forget() -> None:
    """Have no compiled loops: from now on all run as written."""
    for each in _loops:
        each.forget()


def want() -> None:
    """Have the loops compiled in a thread; returns at once. Only the first call does anything."""
    _thread.start()


_thread: Final = CompilingThread(compile_all, "gcspy simulator's machine code")


@contextmanager
def as_written() -> Iterator[None]:
    """Run loops as they are written for a while, compiled or not."""
    with _runs(machine=False):
        yield


@contextmanager
def as_machine_code() -> Iterator[None]:
    """Run compiled loops as machine code for a while: within `as_written`."""
    with _runs(machine=True):
        yield


@contextmanager
def _runs(*, machine: bool) -> Iterator[None]:
    before, _state.machine = _state.machine, machine
    try:
        yield
    finally:
        _state.machine = before
