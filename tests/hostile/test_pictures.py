"""Pictures of a hostile recording, end to end: the commands end, open nothing that it names, and write pictures."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.hostile.corpus import FORGED, corpus
from tests.hostile.file_names import file_names
from tests.hostile.sentinel import Sentinel
from tests.hostile.test_recordings import OBEYED, recorded
from tests.hostile.test_window import NAMES_OF_TEXTS

_SIZE = "1280x800"
_MOST_MEMORY = 6 << 30
"""Bytes of addresses; a picture that never ends took all that there was."""

_PATIENCE_SECS = 300


def limited() -> None:
    """Let the process end itself where it takes more than it can need."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))


def drawn(arguments: list[str], folder: Path) -> None:
    """Run a command that draws, in a process of its own, and judge what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "gcspy", *arguments],
        cwd=folder,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        preexec_fn=limited,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for said in (done.stdout, done.stderr):
        assert not OBEYED.search(said), arguments
        assert not [line for line in said.split("\n") if line.startswith(FORGED)], arguments


def named(folder: Path, sentinel: Sentinel, turn: int) -> Path:
    """A hostile recording under a hostile name."""
    names = list(file_names(sentinel.path).values())
    path = folder / f"x{names[turn % len(names)]}.gcspy"
    recorded(path, corpus(sentinel.path), turn)
    return path


def assert_screenshot(path: Path, sentinel: Sentinel) -> None:
    picture = path.with_suffix(".png")
    drawn(["screenshot", str(path), "-o", str(picture), "--size", _SIZE], path.parent)
    with Image.open(picture) as image:
        assert image.size == (1280, 800)
    assert not sentinel.opened()


@pytest.mark.parametrize("turn", [0])
def test_a_screenshot_of_a_hostile_recording(tmp_path: Path, sentinel: Sentinel, turn: int) -> None:
    assert_screenshot(named(tmp_path, sentinel, turn), sentinel)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(len(NAMES_OF_TEXTS)))
def test_each_picture_of_each_hostile_recording(
    tmp_path: Path, sentinel: Sentinel, turn: int
) -> None:
    path = named(tmp_path, sentinel, turn)
    assert_screenshot(path, sentinel)
    animation, pictures = tmp_path / "a.gif", tmp_path / "pictures"
    drawn(["export", str(path), "-o", str(animation), "--size", _SIZE], tmp_path)
    with Image.open(animation) as image:
        assert image.size == (1280, 800)
    drawn(["export", str(path), "-o", f"{pictures}/", "--size", _SIZE], tmp_path)
    index = json.loads((pictures / "index.json").read_text())
    assert index
    found = list(pictures.glob("*.png"))
    assert found
    for one in found:
        with Image.open(one) as image:
            assert image.format == "PNG"
    assert not sentinel.opened()
