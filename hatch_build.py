"""Builds the libraries in C when gcspy is installed, where a C compiler is; without, everything else works.

Two kinds. The agents for JVMs need the headers of a JVM as well; nothing replaces them. The
libraries of loops over arrays have their sources beside the Python modules that call them, in a
folder ``compiled``; each has a twin in Python that gives the same results. To add one, put its
sources into such a folder and add a line to `LOOPS`; `gcspy_compiled.libraries` finds it.

All names contain a hash of the sources: a JVM keeps a loaded agent for ever, and must not take an
older one for a newer; and Python must not call functions of other sources than its own. Hatchling
runs this file, for wheels and for editable installs; by hand: ``python hatch_build.py``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

ROOT = Path(__file__).resolve().parent
SOURCES = {
    "gcspy-agent": ROOT / "drivers/native/hotspot_agent.c",
    "gcspy-samples": ROOT / "drivers/native/hotspot_samples.c",
    "gcspy-hotspot-trace": ROOT / "drivers/native/hotspot_trace.c",
}
PACKAGE = ROOT / "drivers/gcspy_drivers/hotspot"
COUNTING_SOURCES = ROOT / "drivers/native/counting/gcspy"


class CountingPart(NamedTuple):
    """A part of the agent in Java that counts, which one JDK compiles.

    Attributes:
        release: Version of Java that it is compiled for.
        classes: Its classes.
        needed_by: Which versions of Java need it.
    """

    release: str
    classes: tuple[str, ...]
    needed_by: str


COUNTING_PARTS = (
    CountingPart("8", ("SharedCounter", "SiteList", "CountingAgent"), "any version of Java"),
    CountingPart("8", ("OldSiteCounters",), "Java 8"),
    CountingPart("8", ("AsmSites",), "Java 8 to 23"),
    CountingPart("9", ("SiteCounters",), "Java 9 and later"),
    CountingPart("24", ("ClassFileSites",), "Java 24 and later"),
)
"""Parts of the agent in Java; the others use the first."""
COUNTING_MANIFEST = """\
Manifest-Version: 1.0
Premain-Class: gcspy.CountingAgent
Agent-Class: gcspy.CountingAgent
Can-Retransform-Classes: true
Can-Redefine-Classes: true
"""
FLAGS = (
    "-std=c11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wl,-z,noexecstack",
    "-Wl,-z,now",
)
LIBRARIES = ("-lm",)
_COMPILE_SECS = 120


class Loops(NamedTuple):
    """A library of loops over arrays.

    Attributes:
        name: Beginning of the file's name.
        folder: Folder of its sources, and of the built file.
    """

    name: str
    folder: Path


LOOPS = (
    Loops("gcspy-streams", ROOT / "protocol/gcspy_protocol/compiled"),
    Loops("gcspy-collect", ROOT / "drivers/gcspy_drivers/cpython/cooperation/compiled"),
    Loops("gcspy-entry", ROOT / "drivers/gcspy_drivers/cpython/cooperation/entry"),
    Loops("gcspy-objects", ROOT / "drivers/gcspy_drivers/cpython/objects/compiled"),
    Loops("gcspy-walk", ROOT / "drivers/gcspy_drivers/cpython/graph/compiled"),
    Loops("gcspy-heap-walk", ROOT / "drivers/gcspy_drivers/hotspot/objects/compiled"),
    Loops("gcspy-copied-heap", ROOT / "drivers/gcspy_drivers/hotspot/copied/compiled"),
    Loops("gcspy-dump", ROOT / "objects/gcspy_objects/hprof/compiled"),
    Loops("gcspy-heap", ROOT / "objects/gcspy_objects/heap/compiled"),
    Loops("gcspy-anttracks", ROOT / "objects/gcspy_objects/anttracks/compiled"),
    Loops("gcspy-graph", ROOT / "objects/gcspy_objects/graph/compiled"),
    Loops("gcspy-trace", ROOT / "objects/gcspy_objects/gctrace/compiled"),
    Loops("gcspy-malloc", ROOT / "drivers/gcspy_drivers/native_heap/compiled"),
    Loops("gcspy-pages", ROOT / "drivers/gcspy_drivers/remote/pages/loaded"),
    Loops("gcspy-drain", ROOT / "gcspy/tracer/compiled"),
    Loops("gcspy-preloaded", ROOT / "gcspy/tracer/preloaded"),
)
"""The libraries of loops. They use the C library and nothing else: no header of Python, so that one build fits every Python."""

LOOP_FLAGS = (
    *FLAGS,
    "-O3",
    "-fwrapv",  # numbers of foreign memory wrap around, as numpy's do
    "-Werror=implicit-function-declaration",
)


def find_headers() -> Path | None:
    """Return the folder with jvmti.h: of JAVA_HOME, of the java on the path, or of any JVM where Debian has them."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    for name in ("javac", "java"):
        program = shutil.which(name)
        if program is not None:
            homes.append(Path(os.path.realpath(program)).parent.parent)
    jvms = Path("/usr/lib/jvm")
    homes += sorted(jvms.iterdir()) if jvms.is_dir() else []
    return next((home / "include" for home in homes if (home / "include/jvmti.h").is_file()), None)


def find_compiler() -> str | None:
    """Return a C compiler: that of CC, or any."""
    return next(
        (
            path
            for name in (os.environ.get("CC", ""), "cc", "gcc", "clang")
            if name and (path := shutil.which(name))
        ),
        None,
    )


def build(into: Path = PACKAGE) -> str:
    """Build the agents, unless they are there.

    Returns:
        Why one could not be built; empty if they are there.
    """
    reasons = [_build_agent(prefix, source, into) for prefix, source in SOURCES.items()]
    return next(filter(None, reasons), "")


def _build_agent(prefix: str, source: Path, into: Path) -> str:
    """Build one; return why it could not be built."""
    hashed = hashlib.sha256(source.read_bytes() + " ".join(FLAGS).encode()).hexdigest()
    name = f"{prefix}-{hashed[:12]}.so"
    if (into / name).exists():
        return ""
    headers = find_headers()
    if headers is None:
        compiler = "no C compiler and " if find_compiler() is None else ""
        return f"there is {compiler}no headers of a JVM"
    includes = (f"-I{headers}", f"-I{headers / 'linux'}")
    return _compile(prefix, into / name, (*FLAGS, *includes), [source])


def find_jdks() -> list[Path]:
    """Return the folders of JDKs: of JAVA_HOME, of the javac on the path, and of those where Debian has them."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    compiler = shutil.which("javac")
    if compiler is not None:
        homes.append(Path(os.path.realpath(compiler)).parent.parent)
    jvms = Path("/usr/lib/jvm")
    homes += sorted(jvms.iterdir()) if jvms.is_dir() else []
    return list(dict.fromkeys(each.resolve() for each in homes if (each / "bin/javac").is_file()))


def build_counting_agent(into: Path = PACKAGE) -> list[str]:
    """Build the agent in Java that counts allocation sites, unless it is there, of the parts that a JDK here compiles.

    Returns:
        For each part that is missing which versions of Java need it, and why it is missing.
    """
    sources = sorted(COUNTING_SOURCES.glob("*.java"))
    jdks = find_jdks()
    text = b"".join(each.read_bytes() for each in sources) + repr((jdks, COUNTING_PARTS)).encode()
    name = f"gcspy-counting-{hashlib.sha256(text).hexdigest()[:12]}.jar"
    if (into / name).exists():
        with zipfile.ZipFile(into / name) as jar:
            there = set(jar.namelist())
        return [
            f"{part.needed_by}: no JDK here compiles its part"
            for part in COUNTING_PARTS
            if f"gcspy/{part.classes[0]}.class" not in there
        ]
    missing = []
    with tempfile.TemporaryDirectory() as folder:
        for part in COUNTING_PARTS:
            why_not = _java_compiled(jdks, part, Path(folder))
            if why_not:
                missing.append(f"{part.needed_by}: {why_not}")
            if why_not and part is COUNTING_PARTS[0]:
                return missing
        made = into / f"{name}.{os.getpid()}"
        with zipfile.ZipFile(made, "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", COUNTING_MANIFEST + f"Boot-Class-Path: {name}\n\n")
            for path in sorted(Path(folder).rglob("*.class")):
                jar.write(path, path.relative_to(folder).as_posix())
        made.replace(into / name)
    for old in into.glob("gcspy-counting-*.jar"):
        if old.name != name:
            old.unlink()
    return missing


def _java_compiled(jdks: list[Path], part: CountingPart, into: Path) -> str:
    """Compile one part with the first JDK that can; return why none can."""
    why_not = "there is no JDK"
    flags = ["-nowarn", "-XDignore.symbol.file", "-source", part.release, "-target", part.release]
    for jdk in jdks:
        command = [str(jdk / "bin/javac"), "-d", str(into), "-cp", str(into), *flags]
        command += [str(COUNTING_SOURCES / f"{each}.java") for each in part.classes]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_COMPILE_SECS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            why_not = f"{command[0]} failed: {error}"
            continue
        if not done.returncode:
            return ""
        lines = done.stderr.splitlines()
        error_line = next((each for each in lines if "error:" in each), "no reason told")
        why_not = f"{command[0]} failed: {error_line.strip()[-200:]}"
    return why_not


def build_loops(loops: Loops, into: Path | None = None, flags: tuple[str, ...] = LOOP_FLAGS) -> str:
    """Build a library of loops, unless it is there.

    Args:
        loops: The library.
        into: Folder for the built file; None: beside the sources.
        flags: Flags of the compiler.

    Returns:
        Why it could not be built; empty if it is there.
    """
    hashed = hashlib.sha256(" ".join(flags).encode()).hexdigest()
    name = f"{loops.name}-{_hash_of_sources(loops.folder)}-{hashed[:4]}.so"
    into = into or loops.folder
    if (into / name).exists():
        return ""
    headers = f"-I{ROOT / 'gcspy_compiled'}"
    return _compile(loops.name, into / name, (*flags, headers), sorted(loops.folder.glob("*.c")))


def _hash_of_sources(folder: Path) -> str:
    """Return the hash by which Python finds the library: gcspy is not installed yet, so its module is loaded by its path."""
    path = ROOT / "gcspy_compiled/libraries.py"
    spec = importlib.util.spec_from_file_location("gcspy_libraries", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Callable[[Path], str]", module.hash_of_sources)(folder)


def _compile(prefix: str, library: Path, flags: tuple[str, ...], sources: list[Path]) -> str:
    """Compile a library and remove its older builds; return why it could not be built."""
    if not sys.platform.startswith("linux"):
        return "it is for Linux"
    compiler = find_compiler()
    if compiler is None:
        return "there is no C compiler"
    into, name = library.parent, library.name
    made = into / f"{name}.{os.getpid()}"
    command = [compiler, *flags, "-o", str(made), *map(str, sources), *LIBRARIES]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_COMPILE_SECS
        )
        if done.returncode:
            return f"{compiler} failed: {done.stderr.strip()[-400:]}"
        made.chmod(0o644)
        made.replace(into / name)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler} failed: {error}"
    finally:
        made.unlink(missing_ok=True)
    for old in into.glob(f"{prefix}-*.so"):
        if old.name != name:
            old.unlink()
    return ""


def build_all() -> list[str]:
    """Build everything; return a line for each part that could not be built."""
    agents = build()
    lines = [f"the agent for JVMs is not built: {agents}. {REMEDY}"] if agents else []
    lines += [
        f"gcspy-counting does not count in {part}. {COUNTING_REMEDY}"
        for part in build_counting_agent()
    ]
    for one in LOOPS:
        why_not = build_loops(one)
        if why_not:
            lines.append(f"{one.name} is not built: {why_not}. {LOOPS_REMEDY}")
    return lines


def built_files() -> list[str]:
    """Return the built files, as paths from the root of the project."""
    agents = [path for prefix in SOURCES for path in PACKAGE.glob(f"{prefix}-*.so")]
    agents += PACKAGE.glob("gcspy-counting-*.jar")
    loops = [path for one in LOOPS for path in one.folder.glob(f"{one.name}-*.so")]
    return sorted(f"/{path.relative_to(ROOT)}" for path in agents + loops)


REMEDY = "exact events of JVMs need it: apt-get install gcc libc6-dev default-jdk-headless, and install gcspy again; all else works"
COUNTING_REMEDY = "A JDK that compiles all of it, or two: apt-get install default-jdk-headless, one of Java 24 or later, and gcspy again"
LOOPS_REMEDY = (
    "the same is computed more slowly: apt-get install gcc libc6-dev, and install gcspy again"
)

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # by hand
    pass
else:

    class AgentHook(BuildHookInterface):  # type: ignore[type-arg]
        """Builds the libraries before a wheel, or what an editable install takes for one, is put together."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, object]) -> None:
            """Build them; a wheel that has one is one for this machine."""
            for line in build_all():
                self.app.display_warning(f"gcspy: {line}")
            files = built_files()
            if files and version != "editable":
                artifacts = build_data["artifacts"]
                assert isinstance(artifacts, list)
                artifacts.extend(files)
                build_data["pure_python"] = False
                build_data["tag"] = (
                    f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
                )


if __name__ == "__main__":
    lines = build_all() or ["all libraries are built"]
    sys.stdout.write("".join(f"gcspy: {line}\n" for line in lines))
