"""A JVM whose agent lies: each lie ends in one message, soon and without much memory, and the program continues."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.cooperative import line
from gcspy_drivers.kit import stubbed_driver
from gcspy_protocol.errors import TargetError

from tests.drivers.hotspot.agents import Told
from tests.drivers.hotspot.jvms import Jvm

# By the letter of the lie in `lying_agent.c`; in the order of their occurrence.
LIES = {
    "g": "not a GCspy stub",
    "m": "not a GCspy stub",
    "d": "not a GCspy stub",
    "p": "speaks protocol 99",
    "s": "too small",
    "u": "does not share a sealed page",
    "z": "too small",
    "c": "impossible counts",
    "n": "impossible event: kind 0, number 1152921504606846976",
    "t": "impossible event",
    "f": "impossible event",
    "k": "impossible event: kind 7",
    "3": "no longer in the program",
    "l": "impossible event: kind 9",
    "a": "a thread that it does not have",
    "q": "its stub did not answer within 0.3 s",
    "b": "not a GCspy stub (1 bytes)",
    "i": "no longer in the program",
    "r": "says that it waits, and its thread",
    "e": "no longer in the program",  # hangs up by itself, and so is not waited for by the next one
}
SLOW = {"q": (stubbed_driver, "HELLO_SECS"), "r": (line, "_LONGEST_REST_SECS")}
"""Lies that end us after a time only, and how long that is: 10 and 20 s, of which nothing is learnt here."""
_SECS = 0.3
_MOST_BYTES = 64 << 20


@pytest.fixture(scope="module")
def jvm(classes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """Return a JVM whose agent sends all lies, one after the other."""
    java, compiler = shutil.which("java") or _any_java(), shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc on PATH: an agent that lies is not built")
    folder = tmp_path_factory.mktemp("agent")
    library = folder / "gcspy-agent-00.so"
    source = Path(__file__).with_name("lying_agent.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-pthread", "-o", str(library), str(source)], check=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIES", "".join(LIES) + "j")
        started = Jvm(java, classes, f"-agentpath:{library}=at:{folder / 'line'}")
    with started:
        yield started


def _any_java() -> str:
    from tests.drivers.hotspot.jvms import find_javas

    found = find_javas()
    if not found:
        pytest.skip("no java")
    return found[0]


def test_each_lie_ends_in_one_line(jvm: Jvm, monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for lie, said in LIES.items():
        with monkeypatch.context() as patch:
            if lie in SLOW:
                patch.setattr(*SLOW[lie], _SECS)
            with pytest.raises(TargetError) as raised, Told(jvm.pid) as told:
                told.serve()
        text = str(raised.value)
        assert said in text, lie
        assert "\n" not in text
        assert len(text) < 400
        assert str(jvm.pid) in text, lie
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < _MOST_BYTES
    jvm.tell("keep", 1)
    with Told(jvm.pid) as told:
        while told.server.counts()[1] == 0:
            told.holder.wait(0.01)
            told.driver.tick()
        assert told.server.counts()[1:3] == ((1 << 40) - 1,) * 2, "counted, and not one by one"
        assert told.server._core.lost < 1 << 48
    jvm.tell("keep", 1)
