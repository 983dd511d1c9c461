"""Queries for holders, sent over the wire for the process that a sidecar observes: as the window sends them, with nothing prepared."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.details import AnswerState

from gcspy.connection.link import connect
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar

LEAK = """
import time
class Order: pass
AUDIT = [Order() for _ in range(5000)]
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    # Not tmp_path: a Unix socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="gcspy-test-") as folder:
        yield Path(folder)


@pytest.mark.timeout(170)
def test_a_watched_process_is_asked_who_holds_its_objects(place: Path) -> None:
    options = (f"unix:{place}/s.sock",)
    with subprocess.Popen([sys.executable, "-c", LEAK], stdout=subprocess.PIPE) as target:
        assert target.stdout is not None
        try:
            assert target.stdout.readline() == b"ready\n"
            serving = ServingOptions(pid=target.pid, listen=options, clock_hz=5)
            with start_sidecar(serving) as sidecar:
                link = connect(sidecar.addresses[0], client="test", wants_control=True)
                link.send(m.Query(number=7, space=0, kind="holders", text="Order", most=5))
                answer, steps, events = None, [], 0
                while answer is None:
                    message = link.receive(60.0)
                    assert message is not None
                    events += isinstance(message, m.Event)
                    if isinstance(message, m.Answer):
                        steps.append(message.reason)
                        answer = message if message.state is not AnswerState.UNDER_WAY else None
                link.close()
        finally:
            target.kill()
    assert answer.state is AnswerState.ANSWERED, answer.reason
    names = [column.name for column in answer.table.columns]
    found = dict(zip(names, answer.table.rows[0], strict=True))
    assert (found["Holder"], found["Type"], found["Objects"]) == ("__main__.AUDIT", "list", 5000)
    assert str(found["Address"]).startswith("0x")
    assert len(steps) >= 2, "it was told how far it is"
    assert events, "the sampling went on"
