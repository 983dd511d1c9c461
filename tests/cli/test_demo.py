"""`gcspy demo` without a window: two collectors, or a collector and a real Python, are served as one session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from gcspy_protocol.errors import LinkError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Message

from gcspy.connection.link import Link, connect
from tests.waiting import PATIENCE_SECS, wait_until


@pytest.mark.parametrize(
    ("collector", "versus", "wanted"),
    [
        ("marksweep", "incremental", {"Heap", "incremental: Heap", "Both: utilisation"}),
        ("cpython", "python", {"Heap", "Generations", "Real Python: Generations"}),
    ],
)
def test_a_second_collector_is_served_in_the_same_session(
    collector: str, versus: str, wanted: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "demo.sock"
    words = [
        sys.executable, "-m", "gcspy", "demo", "--collector", collector, "--versus", versus, "--program", "rings",
        "--heap", "64KiB", "--no-window", "--listen", f"unix:{path}",
    ]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as demo:
        try:
            links: list[Link] = []

            def served() -> bool:
                assert demo.poll() is None, demo.stderr and demo.stderr.read()
                try:
                    links.append(connect(f"unix:{path}", timeout_secs=PATIENCE_SECS))
                except LinkError:
                    return False  # not listened on yet
                return True

            wait_until(served, "the session is served")
            (link,) = links
            try:
                interpreter = ClientInterpreter()
                interpreter.apply(link.welcome)

                def known() -> bool:
                    message: Message | None = link.receive(0.2)
                    if message is not None:
                        interpreter.apply(message)
                    return wanted <= {one.space.name for one in interpreter.spaces.values()}

                wait_until(known, f"spaces {wanted}")
            finally:
                link.close()
        finally:
            demo.terminate()
            demo.wait(PATIENCE_SECS)
    assert demo.returncode in (0, 143, -15)
