"""`Loop` and `Compiled`: loops over arrays as machine code, in C if that was built (`c_loops`), or compiled by numba, and cached.

Loops in C are there at once. numba takes half a second to load and seconds to compile, so it is not loaded before it is needed,
and nothing waits for it: until the code is ready, and without numba, plain numpy does the same work
(each loop here has such a twin, and a test that both agree).

Compiled code is cached in ``$XDG_CACHE_HOME/gcspy/numba`` (``~/.cache`` without it). numba trusts
its cache, so the cache is used only in a directory that belongs to us and that nobody else may
write. ``GCSPY_MACHINE_CODE=no`` disables machine code.

Does not know the loops.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from gcspy_compiled.c_loops import CLibrary

__all__ = [
    "VARIABLE",
    "Compilable",
    "Compiled",
    "Compiler",
    "CompilingThread",
    "Loop",
    "cache_folder",
    "compile_after",
    "compile_all",
    "compile_with",
    "find_compiler",
    "forget",
    "want",
    "wanted",
]

VARIABLE: Final = "GCSPY_MACHINE_CODE"
"""Set to ``no`` to disable machine code."""

K = TypeVar("K", bound=tuple[Any, ...])


def cache_folder() -> Path | None:
    """Return the folder for compiled code, made if needed; None if it would not be safe."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path("~/.cache").expanduser()
    folder = base / "gcspy" / "numba"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A user who may write one of the parent folders could replace it.
        for each in (folder, folder.parent):
            found = each.lstat()
            if (
                not stat.S_ISDIR(found.st_mode)
                or found.st_uid != os.geteuid()
                or found.st_mode & 0o022
            ):
                return None
        return folder if os.access(folder, os.W_OK | os.X_OK) else None
    except (OSError, RuntimeError):  # no home, or it is not writable
        return None


class Compiler(NamedTuple):
    """numba, ready to compile.

    Attributes:
        njit: Its decorator.
        keep: Whether it may cache its code.
    """

    njit: Callable[..., Any]
    keep: bool


def wanted() -> bool:
    """Return whether machine code is enabled (``GCSPY_MACHINE_CODE``)."""
    return os.environ.get(VARIABLE) != "no"


def find_compiler() -> Compiler | None:
    """Load numba and set its cache folder; None: disabled, or not installed. Takes half a second."""
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
    """Delay the compilation in threads that are started within, so that a one-shot run ends before anything is compiled."""
    before, _patience.secs = _patience.secs, secs
    try:
        yield
    finally:
        _patience.secs = before


class CompilingThread:
    """A thread that compiles, started at most once; the process can exit without waiting for it.

    Args:
        target: Its function.
        name: Its name.
    """

    def __init__(self, target: Callable[[], object], name: str) -> None:
        self._target, self._name = target, name
        self._patience_secs = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> threading.Thread | None:
        """Start it if it was not, and machine code is enabled; return it, None if there is none."""
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
        """Wait for its end, up to a limit, if it was started."""
        if self._thread is not None:
            self._thread.join(secs)

    def _run(self) -> None:
        time.sleep(self._patience_secs)
        self._patience_secs = 0.0
        self._target()


class Compilable(Protocol):
    """A loop or a loop nest that `compile_all` compiles."""

    def compile(self, njit: Callable[..., Any], *, keep: bool) -> object:
        """Have numba's decorator compile it, unless it is."""


_state = SimpleNamespace(thread=None, asked=0)
_lock = threading.Lock()
_loops: list[Loop] = []


class Loop:
    """A function over arrays as machine code: in C, or compiled by numba.

    It calls no other function of ours: numba would not notice when that one changes, and use its
    stale cache.

    Args:
        written: The Python function.
        signature: Signature for numba, such as ``int64(int64[::1], int64)``.
        library: The library that has the same in C, by the function's name without its first
            ``_``. None: there is none.
    """

    def __init__(
        self, written: Callable[..., Any], signature: str, library: CLibrary | None = None
    ) -> None:
        self.written = written
        self.signature = signature
        self._library = library
        self._compiled: Callable[..., Any] | None = None
        _loops.append(self)

    @property
    def machine(self) -> Callable[..., Any] | None:
        """The function as machine code; None if it is not in C here, and was not compiled."""
        if self._compiled is None and self._library is not None:
            return self._library.loop(self.written.__name__.removeprefix("_"), self.signature)
        return self._compiled

    @machine.setter
    def machine(self, function: Callable[..., Any] | None) -> None:
        self._compiled = function

    def compile(self, njit: Callable[..., Any], *, keep: bool) -> None:
        """Compile it with numba's decorator, unless it is; `keep` says whether numba may cache it."""
        if self.machine is None:
            self.machine = compile_with(njit, self.signature, self.written, keep=keep)


def compile_with(
    njit: Callable[..., Any],
    signature: str,
    function: Callable[..., Any],
    *,
    keep: bool,
    **options: bool,
) -> Callable[..., Any]:
    """Compile a function as all of ours are: without Python's lock, and dividing as numpy does.

    Args:
        njit: numba's decorator.
        signature: The signature for numba, such as ``int64(int64[::1], int64)``.
        function: The function.
        keep: Whether numba may cache it.
        options: More options of numba.
    """
    made: Callable[..., Any] = njit(
        [signature], nogil=True, cache=keep, error_model="numpy", **options
    )(function)
    return made


def _compile_uncounted(
    njit: Callable[..., Any],
    signature: str,
    function: Callable[..., Any],
    *,
    keep: bool,
    **options: bool,
) -> Callable[..., Any]:
    """Compile a function that allocates no array, without counting who uses which array, as `compile_with`.

    numba counts with atomic instructions, also for each array that is taken out of a tuple. Loops that follow references take three times
    as long with it.
    """
    try:
        return compile_with(njit, signature, function, keep=keep, _nrt=False, **options)
    except KeyError:  # a numba that does not know the option, which is not documented
        return compile_with(njit, signature, function, keep=keep, **options)


def compile_all(loops: Iterable[Compilable] | None = None) -> bool:
    """Compile loops that are not in C, or load them from the cache; False if that is impossible. Takes seconds.

    Args:
        loops: The loops; None: all loops of all imported modules.
    """
    needed = [each for each in (_loops if loops is None else loops) if not _is_ready(each)]
    if not needed:
        return True
    compiler = find_compiler()
    if compiler is None:
        return False
    for each in needed:
        each.compile(compiler.njit, keep=compiler.keep)
    return True


def _is_ready(loop: Compilable) -> bool:
    return isinstance(loop, Loop) and loop.machine is not None


def want() -> threading.Thread | None:
    """Compile the loops of imported modules in a thread; returns it at once, None if there is nothing to compile, or machine code is disabled."""
    with _lock:
        if all(map(_is_ready, _loops)):
            return None
        compiling: CompilingThread | None = _state.thread
        if compiling is None or (not compiling.running and _state.asked < len(_loops)):
            compiling = CompilingThread(compile_all, "gcspy objects' machine code")
            thread = compiling.start()
            if thread is not None:
                _state.thread, _state.asked = compiling, len(_loops)
            return thread
        return compiling.start()


def forget() -> None:
    """Drop all compiled loops, until they are requested again."""
    with _lock:
        _state.thread = None
        for each in _loops:
            each.machine = None


class Compiled(Generic[K]):
    """Functions of a module as machine code, compiled in a thread of their own, and cached.

    They allocate no array.

    Args:
        module: The module with their Python source.
        kind: The named tuple that holds them.
        helpers: Signatures of functions that others call, by name, in order of dependency.
        kernels: Signatures of the others.
        library: The library that has in C those of the others that are public; None: there is none.
    """

    def __init__(
        self,
        module: ModuleType,
        kind: Callable[..., K],
        helpers: Mapping[str, str],
        kernels: Mapping[str, str],
        library: CLibrary | None = None,
    ) -> None:
        self._module, self._kind, self._library = module, kind, library
        self._helpers, self._kernels = helpers, kernels
        self._thread = CompilingThread(self._prepare, "gcspy machine code")
        self._found: K | None = None
        self._loaded: K | None = None
        self._made: K | None = None

    @property
    def _in_c(self) -> K | None:
        if self._library is None or not self._library.available:
            return None
        if self._made is None:
            public = {name: one for name, one in self._kernels.items() if name[0] != "_"}
            self._made = self._library.loops(self._kind, public)
        return self._made

    def want(self) -> None:
        """Compile them unless they are in C, or load them from the cache, in a thread; returns at once. Only the first call has an effect."""
        if self._in_c is None:
            self._thread.start()

    def get(self, *, wait_secs: float = 0.0) -> K | None:
        """Return the functions in C or compiled; None while they are not ready, or if they never will be.

        Args:
            wait_secs: How long to wait for them, if they were requested.
        """
        if self._in_c is not None:
            return self._in_c
        if not wanted():
            return None
        if wait_secs > 0:
            self._thread.join(wait_secs)
        return self._found

    @property
    def coming(self) -> bool:
        """Whether they were requested, and are still being compiled."""
        return self._thread.running

    def load(self) -> K | None:
        """Return them in C if that was built; else compile them, or load them from the cache; None without numba.

        The first call takes seconds if they are compiled.
        """
        if self._in_c is not None:
            return self._in_c
        compiler = find_compiler()
        if compiler is None:
            return None
        if self._loaded is None:
            self._loaded = self.build(compiler.njit, keep=compiler.keep)
        return self._loaded

    def load_kept(self) -> K | None:
        """Return the compiled functions if they are ready, or load them from the cache; else request them, and return None.

        Loading takes half a second; compiling would take ten.
        """
        if self._found is None and self.kept():
            self._found = self.load()
        if self._found is None:
            self.want()
        return self.get()

    def kept(self) -> bool:
        """Return whether they are in C, or machine code is enabled and the cache has code of all functions that is newer than their source."""
        if self._in_c is not None:
            return True
        if not wanted():
            return False
        folder, source = cache_folder(), getattr(self._module, "__file__", None)
        if folder is None or source is None:
            return False
        where = Path(source).absolute().parent
        # numba's own names: a folder for each folder of sources, an index for each function.
        digest = hashlib.sha1(str(where).encode(), usedforsecurity=False).hexdigest()
        name, newer = self._module.__name__.rpartition(".")[2], os.stat(source).st_mtime
        kept = {
            path.name.partition("-")[0]
            for path in (folder / f"{where.name}_{digest}").glob(f"{name}.*.nbi")
            if path.stat().st_mtime > newer
        }
        return kept.issuperset(f"{name}.{kernel}" for kernel in self._kernels)

    def build(self, njit: Callable[..., Callable[[Any], Any]], *, keep: bool) -> K:
        """Compile them with numba's decorator; `keep` says whether numba may cache them."""
        # They are compiled as functions of a module of their own, in which the helpers are compiled ones.
        space = dict(vars(self._module))
        made = {}
        for name, signature in {**self._helpers, **self._kernels}.items():
            written = getattr(self._module, name)
            function = FunctionType(written.__code__, space, name)
            function.__qualname__, function.__module__ = name, written.__module__
            # A call of a function with twelve arrays copies ninety words, more than most of these do.
            inline = {"forceinline": True} if name in self._helpers else {}
            made[name] = space[name] = _compile_uncounted(
                njit, signature, function, keep=keep, **inline
            )
        return self._kind(**{name: made[name] for name in self._kernels})

    def _prepare(self) -> None:
        self._found = self.load()
