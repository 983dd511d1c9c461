"""Checks which system libraries and fonts Qt would miss here, before Qt fails with its own message.

It knows what the Qt wheel links to and which Debian package brings it; it does not know Qt, and imports
nothing but the standard library, so that it runs before (and without) PySide6: ``make``, ``.ci/run`` and
``gcspy view`` all use it.

Why not let the import fail? Because Qt names one library at a time ("libEGL.so.1: cannot open shared object
file"), never the package, and aborts the process when only the platform plugin's libraries are missing.

Run as a program it prints one line and exits 1 if anything is missing; with ``--packages`` the line is only
the names of the packages, for a shell.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

OFFSCREEN_LIBRARIES: Mapping[str, str] = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11.so.6": "libx11-6",
    "libbrotlidec.so.1": "libbrotli1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
"""Library to Debian 12 package, for QtWidgets, QtNetwork, QtSvg and the ``offscreen`` platform.

Source: the DT_NEEDED entries of PySide6-Essentials 6.11.3, followed through its own libraries
(``tests/client/test_system_check.py`` walks them again in whatever version is installed).
"""

XCB_LIBRARIES: Mapping[str, str] = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
"""The same for the ``xcb`` platform, which draws on an X display."""

WAYLAND_LIBRARIES: Mapping[str, str] = {
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
}
"""The same for the ``wayland`` platform."""

FONT_PACKAGE = "fonts-dejavu-core"
"""A font for labels. Without any, Qt runs, but every text is a row of boxes."""

_FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts")


def loads(library: str) -> bool:
    """Return whether the dynamic linker finds and loads a library.

    Args:
        library: its soname, e.g. ``libEGL.so.1``.
    """
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def has_fonts() -> bool:
    """Return whether any TrueType or OpenType font is installed where fontconfig looks by default."""
    for folder in _FONT_FOLDERS:
        for suffix in ("ttf", "otf", "ttc"):
            if any(Path(folder).expanduser().rglob(f"*.{suffix}")):
                return True
    return False


def libraries_for(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the libraries Qt will need in this environment.

    Args:
        environment: as ``os.environ``. ``QT_QPA_PLATFORM`` decides if set; otherwise Qt tries Wayland where
            ``WAYLAND_DISPLAY`` is set and X where ``DISPLAY`` is; with neither only ``offscreen`` can work.

    Returns:
        Soname to Debian package.
    """
    needed = dict(OFFSCREEN_LIBRARIES)
    platform = environment.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if platform == "xcb" or (not platform and environment.get("DISPLAY")):
        needed.update(XCB_LIBRARIES)
    if platform.startswith("wayland") or (not platform and environment.get("WAYLAND_DISPLAY")):
        needed.update(WAYLAND_LIBRARIES)
    return needed


def missing(
    environment: Mapping[str, str] | None = None,
    *,
    system: str = sys.platform,
    loads: Callable[[str], bool] = loads,
    has_fonts: Callable[[], bool] = has_fonts,
) -> dict[str, str]:
    """Return what Qt needs and this machine does not have.

    Args:
        environment: as for `libraries_for`; by default this process's own.
        system: as ``sys.platform``. Only Linux wheels lean on the system's libraries; elsewhere the answer is empty.
        loads: the test of one library.
        has_fonts: the test for fonts.

    Returns:
        Missing libraries (a soname, or ``any font``) and the Debian packages that provide them, in
        order of name.
    """
    if not system.startswith("linux"):
        return {}
    needed = libraries_for(os.environ if environment is None else environment)
    absent = {library: package for library, package in sorted(needed.items()) if not loads(library)}
    if not has_fonts():
        absent["any font"] = FONT_PACKAGE
    return absent


def packages(absent: Mapping[str, str]) -> list[str]:
    """Return the packages that would bring what is absent, each once, in order of name."""
    return sorted(set(absent.values()))


def remedy(absent: Mapping[str, str]) -> str:
    """Return one line: what is missing and the command that brings it. Empty when nothing is.

    Args:
        absent: The result of `missing`.
    """
    if not absent:
        return ""
    return (
        f"Qt needs {len(absent)} things that this system does not have ({', '.join(absent)}); "
        f"on Debian or Ubuntu: apt-get install {' '.join(packages(absent))}"
    )


def _main(arguments: list[str]) -> int:
    absent = missing()
    if absent:
        sys.stdout.write(
            (" ".join(packages(absent)) if "--packages" in arguments else remedy(absent)) + "\n"
        )
    return 1 if absent else 0


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1:]))
