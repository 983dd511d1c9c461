"""The list of system libraries is what the installed Qt links to, and what is missing is said with its remedy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from gcspy_client import system_check

# Libraries of any Linux with Python 3.11: the C and C++ libraries and the dynamic linker.
EVERYWHERE = {
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libstdc++.so.6",
}


def needed(path: Path) -> list[str]:
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".dynamic")
        assert isinstance(section, DynamicSection)
        return [
            vars(tag)["needed"] for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"
        ]


def outside(starts: Iterable[Path], folder: Path, shiboken: Path) -> set[str]:
    """Return the libraries that these need, through the wheels' own, and that the wheels do not have."""
    bundled = {
        path.name: path
        for where in (folder, folder / "Qt/lib", shiboken)
        for path in where.glob("*.so*")
    }
    found: set[str] = set()
    seen: set[Path] = set()
    waiting = list(starts)
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in needed(path):
            if name in bundled:
                waiting.append(bundled[name])
            else:
                found.add(name)
    return found


@pytest.fixture(scope="module")
def folders() -> tuple[Path, Path]:
    found = []
    for name in ("PySide6", "shiboken6"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        found.append(Path(spec.origin).parent)
    return found[0], found[1]


MODULES = (
    "QtCore",
    "QtGui",
    "QtWidgets",
    "QtNetwork",
    "QtTest",
    "QtSvg",
    "QtOpenGL",
    "QtOpenGLWidgets",
)


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux wheels lean on the system's libraries"
)
def test_the_list_for_offscreen_is_what_the_installed_wheel_links_to(
    folders: tuple[Path, Path],
) -> None:
    qt, shiboken = folders
    starts = [qt / f"{module}.abi3.so" for module in MODULES] + [
        qt / "Qt/plugins/platforms/libqoffscreen.so"
    ]
    real = outside(starts, qt, shiboken) - EVERYWHERE
    # Two libraries of one package: each check reports whether it is there.
    assert real - {"libbrotlicommon.so.1"} == set(system_check.OFFSCREEN_LIBRARIES)


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux wheels lean on the system's libraries"
)
@pytest.mark.parametrize(
    ("plugin", "table"),
    [
        ("libqxcb.so", system_check.XCB_LIBRARIES),
        ("libqwayland.so", system_check.WAYLAND_LIBRARIES),
    ],
)
def test_the_lists_for_a_display_are_what_its_plugin_adds(
    plugin: str, table: dict[str, str], folders: tuple[Path, Path]
) -> None:
    qt, shiboken = folders
    real = outside([qt / "Qt/plugins/platforms" / plugin], qt, shiboken)
    assert real - EVERYWHERE - set(system_check.OFFSCREEN_LIBRARIES) - {
        "libbrotlicommon.so.1"
    } == set(table)


def test_what_is_missing_is_one_line_with_its_packages() -> None:
    gone = {"libEGL.so.1", "libglib-2.0.so.0", "libgthread-2.0.so.0"}
    absent = system_check.missing(
        {}, system="linux", loads=lambda name: name not in gone, has_fonts=lambda: False
    )
    assert set(absent) == gone | {"any font"}
    line = system_check.remedy(absent)
    assert "\n" not in line
    assert "4 things" in line
    assert "libEGL.so.1" in line
    assert line.endswith("apt-get install fonts-dejavu-core libegl1 libglib2.0-0")


def test_nothing_missing_is_nothing_to_say() -> None:
    assert (
        system_check.missing({}, system="linux", loads=lambda _: True, has_fonts=lambda: True) == {}
    )
    assert system_check.remedy({}) == ""


@pytest.mark.parametrize(
    ("environment", "xcb", "wayland"),
    [
        ({}, False, False),
        ({"DISPLAY": ":0"}, True, False),
        ({"WAYLAND_DISPLAY": "wayland-0"}, False, True),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, True, True),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}, False, False),
        ({"QT_QPA_PLATFORM": "xcb"}, True, False),
        ({"QT_QPA_PLATFORM": "wayland-egl:x"}, False, True),
    ],
)
def test_the_display_decides_what_is_needed(
    environment: dict[str, str], xcb: bool, wayland: bool
) -> None:
    libraries = system_check.libraries_for(environment)
    assert ("libxcb.so.1" in libraries, "libwayland-client.so.0" in libraries) == (xcb, wayland)
    assert set(system_check.OFFSCREEN_LIBRARIES) <= set(libraries)


def test_elsewhere_than_on_linux_nothing_is_needed() -> None:
    assert (
        system_check.missing({}, system="win32", loads=lambda _: False, has_fonts=lambda: False)
        == {}
    )


def test_a_library_that_is_not_there_does_not_load() -> None:
    assert not system_check.loads("libgcspy-is-no-such-library.so.1")


def test_as_a_program_it_answers_before_anything_is_installed(tmp_path: Path) -> None:
    # -S and -I: no site-packages, as on a machine where nothing was installed yet.
    command = [sys.executable, "-I", "-S", system_check.__file__, "--packages"]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"QT_QPA_PLATFORM": "offscreen"},
    )
    assert done.stderr == ""
    assert (done.returncode == 0) == (done.stdout == "")
