"""`Loop` and `Compiled`: loops over arrays as machine code, made by numba where it is installed, and kept for the next time.

numba takes half a second to load and seconds to compile, so nothing of it is loaded before somebody wants it, and nobody has to wait: until the
code is there, and where there is no numba, plain numpy does the same work (each loop here has such a twin, and a test that both agree).

What was compiled is kept in ``$XDG_CACHE_HOME/gcspy/numba`` (``~/.cache`` without it). numba believes what it finds there, so it is kept only in
a directory that belongs to us and that nobody else may write. ``GCSPY_MACHINE_CODE=no`` does without.

Knows nothing of what is compiled.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final, Generic, NamedTuple, TypeVar

__all__ = [
    "VARIABLE",
    "Compiled",
    "Compiler",
    "CompilingThread",
    "Loop",
    "cache_folder",
    "compile_after",
    "compile_all",
    "find_compiler",
    "forget",
    "want",
    "wanted",
]

VARIABLE: Final = "GCSPY_MACHINE_CODE"
"""Says ``no`` where machine code is not wanted."""

K = TypeVar("K", bound=tuple[Any, ...])


def cache_folder() -> Path | None:
    """Return the folder for what was compiled, made if need be; None where it would not be safe."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path("~/.cache").expanduser()
    folder = base / "gcspy" / "numba"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Who may write one of the folders on the way may put another one in its place.
        for each in (folder, folder.parent):
            found = each.lstat()
            if (
                not stat.S_ISDIR(found.st_mode)
                or found.st_uid != os.geteuid()
                or found.st_mode & 0o022
            ):
                return None
        return folder if os.access(folder, os.W_OK | os.X_OK) else None
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return None


class Compiler(NamedTuple):
    """numba, ready to compile.

    Attributes:
        njit: Its decorator.
        keep: Whether it may write down what it compiled.
    """

    njit: Callable[..., Any]
    keep: bool


def wanted() -> bool:
    """Return whether machine code is wanted (``GCSPY_MACHINE_CODE``)."""
    return os.environ.get(VARIABLE) != "no"


def find_compiler() -> Compiler | None:
    """Load numba and tell it where to keep what it compiles; None: not wanted, or not installed. Takes half a second."""
    if not wanted():
        return None
    try:
        import numba
    except ImportError:
        return None
    folder = cache_folder()
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)
    return Compiler(numba.njit, keep=folder is not None)


_patience = SimpleNamespace(secs=0.0)


@contextmanager
def compile_after(secs: float) -> Iterator[None]:
    """Have threads that are started within compile only after so long: so that a one-shot run ends before anything is compiled."""
    before, _patience.secs = _patience.secs, secs
    try:
        yield
    finally:
        _patience.secs = before


class CompilingThread:
    """A thread that compiles, started at most once; whoever leaves meanwhile does not wait for it.

    Args:
        target: What it does.
        name: Its name.
    """

    def __init__(self, target: Callable[[], object], name: str) -> None:
        self._target, self._name = target, name
        self._patience_secs = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> threading.Thread | None:
        """Start it if it was not, and machine code is wanted; return it, None if there is none."""
        with self._lock:
            if self._thread is None and wanted():
                self._patience_secs = _patience.secs
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            return self._thread

    @property
    def running(self) -> bool:
        """Whether it was started, has begun to compile, and has not ended."""
        return self._thread is not None and self._thread.is_alive() and not self._patience_secs

    def join(self, secs: float) -> None:
        """Wait so long for its end, if it was started."""
        if self._thread is not None:
            self._thread.join(secs)

    def _run(self) -> None:
        time.sleep(self._patience_secs)
        self._patience_secs = 0.0
        self._target()


_state = SimpleNamespace(thread=None, asked=0)
_lock = threading.Lock()
_loops: list[Loop] = []


class Loop:
    """A function over arrays that numba can compile: `machine` is what it made of it, or None.

    It calls no other function of ours: numba would not notice when that one changes, and take what it kept.

    Args:
        written: The function.
        signature: What numba is told, such as ``int64(int64[::1], int64)``.
    """

    def __init__(self, written: Callable[..., Any], signature: str) -> None:
        self.written = written
        self.signature = signature
        self.machine: Callable[..., Any] | None = None
        _loops.append(self)

    def compile(self, njit: Callable[..., Any], *, keep: bool) -> None:
        """Have numba's decorator compile it, unless it is; `keep` says whether numba may write down what it compiled."""
        if self.machine is None:
            self.machine = njit([self.signature], nogil=True, cache=keep, error_model="numpy")(
                self.written
            )


def compile_all(loops: Iterable[Loop] | None = None) -> bool:
    """Compile loops, or load what was compiled before; False where it cannot be. Takes seconds.

    Args:
        loops: Which ones; None: every one of every module that was imported.
    """
    compiler = find_compiler()
    if compiler is None:
        return False
    for each in _loops if loops is None else loops:
        each.compile(compiler.njit, keep=compiler.keep)
    return True


def want() -> threading.Thread | None:
    """Have the loops of modules that were imported compiled in a thread; returns it at once, None where machine code is not wanted."""
    with _lock:
        compiling: CompilingThread | None = _state.thread
        if compiling is None or (not compiling.running and _state.asked < len(_loops)):
            compiling = CompilingThread(compile_all, "gcspy objects' machine code")
            thread = compiling.start()
            if thread is not None:
                _state.thread, _state.asked = compiling, len(_loops)
            return thread
        return compiling.start()


def forget() -> None:
    """Have no compiled loops, until somebody wants some again."""
    with _lock:
        _state.thread = None
        for each in _loops:
            each.machine = None


class Compiled(Generic[K]):
    """Functions of a module as machine code, compiled in a thread of their own, and kept for the next time.

    Args:
        module: Where they are written, as loops over arrays.
        kind: The named tuple that they are handed out in.
        helpers: Signatures of functions that others call, by name, in the order in which they need each other.
        kernels: Signatures of the others.
    """

    def __init__(
        self,
        module: ModuleType,
        kind: Callable[..., K],
        helpers: Mapping[str, str],
        kernels: Mapping[str, str],
    ) -> None:
        self._module, self._kind = module, kind
        self._helpers, self._kernels = helpers, kernels
        self._thread = CompilingThread(self._prepare, "gcspy machine code")
        self._found: K | None = None

    def want(self) -> None:
        """Have them compiled, or loaded, in a thread; returns at once. Only the first call does anything."""
        self._thread.start()

    def get(self, *, wait_secs: float = 0.0) -> K | None:
        """Return the compiled functions; None while they are not there, or when they never will be.

        Args:
            wait_secs: How long to wait for them, if they were wanted.
        """
        if not wanted():
            return None
        if wait_secs > 0:
            self._thread.join(wait_secs)
        return self._found

    @property
    def coming(self) -> bool:
        """Whether they were wanted, and are still being made."""
        return self._thread.running

    def load(self) -> K | None:
        """Compile them, or load what was compiled before; None without numba. Takes seconds."""
        compiler = find_compiler()
        return None if compiler is None else self.build(compiler.njit, keep=compiler.keep)

    def build(self, njit: Callable[..., Callable[[Any], Any]], *, keep: bool) -> K:
        """Compile them with numba's decorator; `keep` says whether numba may write down what it compiled."""
        # They are compiled as functions of a module of their own, in which the helpers are compiled ones.
        space = dict(vars(self._module))
        options: Mapping[str, Any] = {"nogil": True, "cache": keep, "error_model": "numpy"}
        made = {}
        for name, signature in {**self._helpers, **self._kernels}.items():
            written = getattr(self._module, name)
            function = FunctionType(written.__code__, space, name)
            function.__qualname__, function.__module__ = name, written.__module__
            made[name] = space[name] = njit([signature], **options)(function)
        return self._kind(**{name: made[name] for name in self._kernels})

    def _prepare(self) -> None:
        self._found = self.load()
