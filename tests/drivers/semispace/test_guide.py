"""drivers/adding-a-driver.md shows code that is really there."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gcspy_drivers.semispace import driver
from gcspy_protocol import ClientInterpreter

from gcspy.connection.link import connect
from tests.waiting import PATIENCE_SECS

_ROOT = Path(__file__).parents[3]
_GUIDE = _ROOT / "drivers" / "adding-a-driver.md"
_BLOCKS = re.findall(r"^```python (\S+)\n(.*?)^```$", _GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_guide_shows_code() -> None:
    assert len(_BLOCKS) >= 8
    assert "```python\n" not in _GUIDE.read_text(), (
        "a block of Python names the file that it stands in"
    )


@pytest.mark.parametrize(
    ("path", "code"), _BLOCKS, ids=[str(number) for number in range(len(_BLOCKS))]
)
def test_a_block_of_the_guide_stands_in_its_file(path: str, code: str) -> None:
    assert code in (_ROOT / path).read_text()


def test_the_guide_counts_the_lines_of_the_driver() -> None:
    lines = len(Path(driver.__file__).read_text().splitlines())
    assert f"driver is {lines} lines" in _GUIDE.read_text()
    assert lines < 150


def test_the_example_program_can_be_watched_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-m", "gcspy_drivers.semispace"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        state = ClientInterpreter()
        with connect(address) as link:
            while state.last_event is None:
                message = link.receive(60)
                assert message is not None
                state.apply(message)
        space = next(iter(state.spaces.values()))
        used = space.streams[0].summary
        assert used is not None
        assert used.values[0] > 0
        assert "objects" in space.info
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_SECS)
    assert process.returncode == 0
    assert list((tmp_path / "gcspy").iterdir()) == []
