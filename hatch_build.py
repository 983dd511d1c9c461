"""Builds the agents for JVMs when gcspy is installed, if a C compiler and the headers of a JVM are there; without, everything else works.

Their names contain a hash of their source: a JVM keeps a loaded one for ever, and must not take an
older one for a newer. Hatchling runs this file, for wheels and for editable installs; by hand:
``python hatch_build.py``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent
SOURCES = {
    "gcspy-agent": ROOT / "drivers/native/hotspot_agent.c",
    "gcspy-samples": ROOT / "drivers/native/hotspot_samples.c",
}
PACKAGE = ROOT / "drivers/gcspy_drivers/hotspot"
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
    reasons = [_build(prefix, source, into) for prefix, source in SOURCES.items()]
    return next(filter(None, reasons), "")


def _build(prefix: str, source: Path, into: Path) -> str:
    """Build one; return why it could not be built."""
    hashed = hashlib.sha256(source.read_bytes() + " ".join(FLAGS).encode()).hexdigest()
    name = f"{prefix}-{hashed[:12]}.so"
    if (into / name).exists():
        return ""
    compiler, headers = find_compiler(), find_headers()
    if not sys.platform.startswith("linux"):
        return "it is for Linux"
    if compiler is None or headers is None:
        missing = [
            what
            for what, found in (("a C compiler", compiler), ("the headers of a JVM", headers))
            if not found
        ]
        return f"there is no {' and no '.join(one.removeprefix('a ').removeprefix('the ') for one in missing)}"
    made = into / f"{name}.{os.getpid()}"
    command = [
        compiler,
        *FLAGS,
        f"-I{headers}",
        f"-I{headers / 'linux'}",
        "-o",
        str(made),
        str(source),
        *LIBRARIES,
    ]
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


REMEDY = "exact events of JVMs need it: apt-get install gcc libc6-dev default-jdk-headless, and install gcspy again; all else works"

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # by hand
    pass
else:

    class AgentHook(BuildHookInterface):  # type: ignore[type-arg]
        """Builds the agent before a wheel, or what an editable install takes for one, is put together."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, object]) -> None:
            """Build it; a wheel that has it is one for this machine."""
            why_not = build()
            if why_not:
                self.app.display_warning(
                    f"gcspy: the agent for JVMs is not built: {why_not}. {REMEDY}"
                )
            elif version != "editable":
                artifacts = build_data["artifacts"]
                assert isinstance(artifacts, list)
                artifacts.extend(
                    f"/drivers/gcspy_drivers/hotspot/{prefix}-*.so" for prefix in SOURCES
                )
                build_data["pure_python"] = False
                build_data["tag"] = (
                    f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
                )


if __name__ == "__main__":
    reason = build()
    sys.stdout.write(
        f"gcspy: the agent for JVMs is not built: {reason}. {REMEDY}\n"
        if reason
        else "gcspy: the agent for JVMs is built\n"
    )
