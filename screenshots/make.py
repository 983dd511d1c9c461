"""Makes the pictures of the documents from real sessions: `make screenshots`.

A picture that the documents show and this does not make is an old one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
WORKLOAD = HERE.parent / "gcspy" / "demo" / "workload.py"

WATCH_SECS = 3.5
"""How long the window runs before the picture, for its small history graph."""

MANY_RECORDS = 60_000

SCENES = (
    # scene, file, size, theme
    ("start", "start-page-dark.png", "1280x720", "dark"),
    ("start", "start-page-light.png", "1280x720", "light"),
    ("views", "views-dark.png", "1600x1000", "dark"),
    ("views", "views-light.png", "1600x1000", "light"),
    ("holders", "holders-1280x720.png", "1280x720", "dark"),
    ("filters", "filters-dark.png", "1600x1000", "dark"),
    ("compare", "compare-dark.png", "1600x1000", "dark"),
    ("compare", "compare-light.png", "1600x1000", "light"),
    ("beside", "beside-dark.png", "1600x1000", "dark"),
    ("trigger", "trigger-fired-dark.png", "1600x1000", "dark"),
    ("trigger", "trigger-fired-light.png", "1600x1000", "light"),
    ("history", "history-dark.png", "1600x1000", "dark"),
    ("history", "history-light.png", "1600x1000", "light"),
    ("past", "looking-back-dark.png", "1600x1000", "dark"),
    ("past", "looking-back-light.png", "1600x1000", "light"),
    ("past", "looking-back-1280x720.png", "1280x720", "dark"),
    ("replay", "replay-dark.png", "1600x1000", "dark"),
    ("replay", "replay-light.png", "1600x1000", "light"),
    ("replay", "replay-3840x2160.png", "3840x2160", "light"),
)

INVESTIGATIONS = {
    "investigations": ("linter", "workbook", "graph"),
    "jvm-investigations": ("attachments", "sessions", "accounts"),
    "native-investigations": (
        "fragmentation",
        "kept_by_malloc",
        "many_arenas",
        "cache_hoard",
        "fast_bins",
    ),
}
"""Recordings in folders of docs, each a scene of that name."""

JVMS = (
    # scene, file, flags of the JVM
    ("jvm", "jvm-g1.png", ("-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m", "-Xmx256m")),
    ("jvm", "jvm-parallel.png", ("-XX:+UseParallelGC", "-Xmx256m")),
    ("jvm", "jvm-zgc.png", ("-XX:+UseZGC", "-Xmx512m")),
    ("jvm-history", "jvm-history.png", ("-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m", "-Xmx256m", "-XX:-G1UseAdaptiveIHOP", "-XX:InitiatingHeapOccupancyPercent=35")),
)  # fmt: skip
JVM_MEGABYTES = 90

PICTURES = (
    # file, size, theme
    ("cpython-live-dark.png", "1600x1000", "dark"),
    ("cpython-live-light.png", "1600x1000", "light"),
    ("cpython-live-1280x720.png", "1280x720", "dark"),
    ("cpython-live-3840x2160.png", "3840x2160", "dark"),
)


def wait_for_holes(workload: subprocess.Popen[str]) -> None:
    """Wait until a burst of records is nearly over: when they go, the arenas that they filled are full of holes."""
    assert workload.stdout is not None
    before = 0
    for line in workload.stdout:
        found = re.search(r"records=(\d+)", line)
        records = int(found[1]) if found else 0
        if records < before and before >= MANY_RECORDS:
            return
        before = records
    raise RuntimeError(f"the workload ended early, exit code {workload.wait()}")


def take_scenes(pid: int, folder: Path) -> None:
    """Take the pictures of the scenes, in the session that is watched and in one that was saved from it."""
    script = [sys.executable, str(HERE / "scenes.py")]
    saved = folder / "session.gcspy"
    subprocess.run([*script, "save", str(pid), str(saved)], check=True)
    for scene, name, size, theme in SCENES:
        source = str(saved) if scene == "replay" else str(pid)
        subprocess.run([*script, scene, source, str(HERE / name), size, theme], check=True)


def take_investigations() -> None:
    """Take the pictures of the documents of investigations, in the recordings beside them."""
    for folder, names in INVESTIGATIONS.items():
        for name in names:
            source = HERE.parent / "docs" / folder / f"{name}.gcspy.zst"
            if not source.exists():  # a small one, which is not compressed
                source = source.with_suffix("")
            picture = HERE / f"investigation-{name.replace('_', '-')}.png"
            subprocess.run(
                [
                    sys.executable,
                    str(HERE / "scenes.py"),
                    name,
                    str(source),
                    str(picture),
                    "1600x1000",
                    "dark",
                ],
                check=True,
            )


def take_jvms() -> None:
    """Take the pictures of JVMs under load; says so where there is no JDK."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        print("no JDK on PATH: the pictures of JVMs stay as they are", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
        subprocess.run(["javac", "-d", folder, str(HERE / "Load.java")], check=True)
        for scene, name, flags in JVMS:
            command = ["java", *flags, "-cp", folder, "Load", str(JVM_MEGABYTES)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
                try:
                    assert load.stdout is not None
                    load.stdout.readline()
                    subprocess.run(
                        [
                            sys.executable,
                            str(HERE / "scenes.py"),
                            scene,
                            str(load.pid),
                            str(HERE / name),
                            "1600x1000",
                            "dark",
                        ],
                        check=True,
                    )
                finally:
                    load.kill()


def take_two_collectors() -> None:
    """Take the picture of two collectors that keep step."""
    words = [
        "--collector",
        "marksweep",
        "--versus",
        "semispace",
        "--program",
        "lru",
        "--heap",
        "256KiB",
        "--pace",
        "20",
        "--seconds",
        "12",
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY")
    }
    subprocess.run(
        [
            sys.executable,
            "-m",
            "gcspy",
            "demo",
            *words,
            "-o",
            str(HERE / "two-collectors-dark.png"),
        ],
        check=True,
        env=environment,
    )


def main() -> int:
    """Run the demonstration's workload and take its pictures."""
    # Relative: the start page shows the command line, and should not show the folders of the
    # machine.
    arguments = ["python", str(WORKLOAD.relative_to(HERE.parent)), "--seed", "1"]
    with subprocess.Popen(
        arguments,
        executable=sys.executable,
        cwd=HERE.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as workload:
        try:
            for name, size, theme in PICTURES:
                wait_for_holes(workload)
                picture = [
                    "-o",
                    str(HERE / name),
                    "--size",
                    size,
                    "--theme",
                    theme,
                    "--after",
                    str(WATCH_SECS),
                ]
                subprocess.run(
                    [sys.executable, "-m", "gcspy", "screenshot", str(workload.pid), *picture],
                    check=True,
                )
            with tempfile.TemporaryDirectory(prefix="gcspy-") as folder:
                take_scenes(workload.pid, Path(folder))
        finally:
            workload.terminate()
            workload.communicate()
    take_investigations()
    take_two_collectors()
    take_jvms()
    for script in (
        "counted_sites.py",
        "presentation.py",
        "large.py",
        "leak.py",
        "lessons.py",
        "native.py",
        "pages.py",
        "prometheus.py",
        "tree.py",
        "traces.py",
    ):
        subprocess.run([sys.executable, str(HERE / script)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
