"""`--reconnect`: a recorder and a text client whose connection is cut, and comes back."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_replay.file import FileSource, Recording, verify

from gcspy.cli import main
from gcspy.connection.link import connect
from gcspy.exit_codes import ExitCode
from tests.cli.test_record import started
from tests.cli.test_record_lossless import eventually, facts_of, newest
from tests.server.relay import Relay
from tests.server.target import START, Target


@contextmanager
def cuttable(folder: Path, target: Target, token: str = "") -> Iterator[Relay]:
    """A connection to a served target that can be cut; another client watches, too, so that events happen in any case.

    With a token it goes over plain TCP.
    """
    more = ("127.0.0.1:0",) if token else ()
    with (
        target.server.serve(f"unix:{folder}/x.sock", *more, token=token or None) as listening,
        connect(listening.addresses[0], client="witness"),
    ):
        relay = Relay(None if token else folder / "relay", listening.addresses[-1])
        try:
            yield relay
        finally:
            relay.close()


def clients_of(target: Target) -> int:
    return target.server._core._audience.clients


def cut(
    relay: Relay, client: subprocess.Popen[str], target: Target, meanwhile: Callable[[], None]
) -> None:
    """Cut a client off; it comes back when something has happened meanwhile."""
    client.send_signal(signal.SIGSTOP)
    relay.cut()
    eventually(lambda: clients_of(target) == 1)
    meanwhile()
    client.send_signal(signal.SIGCONT)
    eventually(lambda: clients_of(target) == 2)


def events_until(target: Target, occurrence: int) -> None:
    while target.server.counts()[START] < occurrence:
        target.event(START)


def lost_and_found(
    folder: Path, target: Target, *options: str, token: str = ""
) -> tuple[Path, dict[str, Any], list[np.ndarray[Any, Any]]]:
    """Record some of events 1 to 12; the connection is lost after 5, and after 9, where nothing happens until it is back."""
    path, truth = folder / "a.gcspy", []

    def until(occurrence: int) -> None:
        while target.server.counts()[START] < occurrence:
            target.event(START)
            truth.append(target.used.data.copy())

    with (
        cuttable(folder, target, token) as relay,
        started(
            "record", relay.address, "-o", str(path), "--reconnect", "--json", *options
        ) as recorder,
    ):
        eventually(lambda: clients_of(target) == 2)
        for occurrence in (1, 5):
            until(occurrence)
            eventually(lambda: newest(path) == target.server.counts()[START])
        cut(relay, recorder, target, lambda: until(8))
        eventually(lambda: newest(path) == 8)
        until(9)
        eventually(lambda: newest(path) == 9)
        cut(relay, recorder, target, lambda: None)
        until(12)
        eventually(lambda: newest(path) == 12)
        recorder.send_signal(signal.SIGINT)
        facts = facts_of(recorder)
    return path, facts, truth


@pytest.mark.parametrize(
    ("options", "token"), [((), ""), (("--lossless",), ""), ((), "correct horse battery staple")]
)
def test_a_recording_goes_on_after_a_gap(
    tmp_path: Path,
    options: tuple[str, ...],
    token: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a token over plain TCP, where each connection must authenticate again."""
    monkeypatch.setenv("GCSPY_TOKEN", token)
    target = Target()
    path, facts, truth = lost_and_found(tmp_path, target, *options, token=token)
    assert facts["reconnected"] == 2
    assert facts["missed"] == 12 - facts["events"]
    with FileSource(path) as source:
        report = verify(source)
    assert (report.intact, report.findings) == (True, [])
    with Recording.open(path) as recording:
        occurrences = recording.events["occurrence"].astype(int)
        assert recording.events["number"].tolist() == list(range(1, len(occurrences) + 1))
        # Events between the reconnection and the first keyframe may be missed too.
        assert occurrences[:7].tolist() == [1, 2, 3, 4, 5, 8, 9]
        assert occurrences[-1] == 12
        assert recording.events["missed"].tolist() == (np.diff(occurrences, prepend=0) - 1).tolist()
        for step, session in recording.steps():
            values = truth[step.change.event.occurrence - 1]
            for state in (session, recording.seek(step.number)):
                np.testing.assert_array_equal(
                    state.spaces[target.heap.id].streams[target.used.schema.id].values, values
                )
            assert session.missed_total == step.change.event.occurrence - step.number
    assert main(["info", str(path)]) == ExitCode.OK
    assert f"{facts['missed']} events were dropped before the recorder" in capsys.readouterr().out


def test_another_session_is_another_recording(tmp_path: Path) -> None:
    target, other = Target(), Target()
    path = tmp_path / "a.gcspy"
    with (
        cuttable(tmp_path, target) as relay,
        other.server.serve(f"unix:{tmp_path}/y.sock") as listening,
        started("record", relay.address, "-o", str(path), "--reconnect", "--json") as recorder,
    ):
        eventually(lambda: clients_of(target) == 2)
        events_until(target, 3)
        eventually(lambda: newest(path) == 3)
        relay.lead_to(listening.addresses[0])
        relay.cut()
        output, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == ExitCode.NO_CONNECTION, errors
    assert "another session now answers" in errors
    assert json.loads(output)["stopped"] == "lost"
    with Recording.open(path) as recording:
        assert recording.indexed
        assert len(recording) == 3


def test_another_program_at_the_port_is_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the cut a server listens there that does not know the token: the recorder reports it and stops."""
    monkeypatch.setenv("GCSPY_TOKEN", "correct horse battery staple")
    target, other, path = Target(), Target(), tmp_path / "a.gcspy"
    with (
        cuttable(tmp_path, target, "correct horse battery staple") as relay,
        other.server.serve("127.0.0.1:0", token="another") as listening,
        started("record", relay.address, "-o", str(path), "--reconnect", "--json") as recorder,
    ):
        eventually(lambda: clients_of(target) == 2)
        events_until(target, 3)
        eventually(lambda: newest(path) == 3)
        relay.lead_to(listening.addresses[0])
        relay.cut()
        _, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == ExitCode.NO_CONNECTION, errors
    assert "cannot prove that it knows the token" in errors
    with Recording.open(path) as recording:
        assert recording.indexed
        assert len(recording) == 3


def test_without_it_the_recording_ends(tmp_path: Path) -> None:
    target, path = Target(), tmp_path / "a.gcspy"
    with (
        cuttable(tmp_path, target) as relay,
        started("record", relay.address, "-o", str(path)) as recorder,
    ):
        eventually(lambda: clients_of(target) == 2)
        events_until(target, 3)
        eventually(lambda: newest(path) == 3)
        relay.cut()
        recorder.communicate(timeout=60)
    assert recorder.returncode == ExitCode.NO_CONNECTION


def test_the_text_client_goes_on_and_prints_no_event_twice(tmp_path: Path) -> None:
    target = Target()
    with (
        cuttable(tmp_path, target) as relay,
        started("tail", relay.address, "--reconnect=1min", "--json", "--events", "6") as tail,
    ):
        assert tail.stdout is not None
        eventually(lambda: clients_of(target) == 2)
        shown = []
        for occurrence in (1, 2, 3):
            events_until(target, occurrence)
            shown.append(json.loads(tail.stdout.readline())["occurrence"])
        cut(relay, tail, target, lambda: events_until(target, 8))
        eventually(lambda: bool(target.event(START)) and tail.poll() is not None)
        output, errors = tail.communicate(timeout=60)
        rest = [json.loads(line) for line in output.splitlines()]
        shown += [event["occurrence"] for event in rest]
    assert (tail.returncode, len(shown), shown[:3]) == (ExitCode.OK, 6, [1, 2, 3])
    assert shown == sorted(set(shown))
    assert shown[3] >= 8
    assert [event["missed_total"] for event in rest] == [
        occurrence - number for number, occurrence in enumerate(shown, 1)
    ][3:]
    assert "trying to reconnect for 60 s" in errors
    assert "reconnected to unix:" in errors


@pytest.mark.parametrize("time", ["0", "soon", "unix:/x"])
def test_what_is_no_time_is_refused(time: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tail", "--reconnect", time, "1"]) == ExitCode.USAGE
    assert "is not a time such as 30s" in capsys.readouterr().err
