"""Queries for holders and for memory, sent over the wire for the process that a sidecar observes: as the window and the commands send them, with nothing prepared."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.details import (
    AnswerState,
    ColumnKind,
    DetailColumn,
    DetailTable,
    MemoryReport,
)
from gcspy_protocol.model import Mode, PauseActsOn

from gcspy.connection.link import connect
from gcspy.connection.session_question import ask_session
from gcspy.exit_codes import ExitCode
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from gcspy_server.api import HeapQuestion, HeapQuestionKind
from tests.cli.conftest import Run
from tests.hostile.server import SpeakingServer

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


def test_a_question_waits_for_a_client_that_is_just_leaving(place: Path) -> None:
    """Its control is free a moment after it has left."""
    address = f"unix:{place}/s.sock"
    with subprocess.Popen([sys.executable, "-c", LEAK], stdout=subprocess.PIPE) as target:
        assert target.stdout is not None
        try:
            assert target.stdout.readline() == b"ready\n"
            serving = ServingOptions(pid=target.pid, listen=(address,), clock_hz=5)
            with start_sidecar(serving) as sidecar:
                leaving = connect(sidecar.addresses[0], client="test", wants_control=True)
                timer = threading.Timer(0.3, leaving.close)
                timer.start()
                question = HeapQuestion(kind=HeapQuestionKind.HOLDERS, type_name="Order", most=5)
                table = ask_session(address, question, "")
                timer.join()
        finally:
            target.kill()
    assert table.rows[0][0] == "__main__.AUDIT"


@pytest.mark.timeout(300)
def test_commands_ask_a_session_by_its_address(place: Path, gcspy: Run) -> None:
    address = f"unix:{place}/s.sock"
    with subprocess.Popen([sys.executable, "-c", LEAK], stdout=subprocess.PIPE) as target:
        assert target.stdout is not None
        try:
            assert target.stdout.readline() == b"ready\n"
            serving = ServingOptions(pid=target.pid, listen=(address,), clock_hz=5)
            with start_sidecar(serving) as sidecar:
                assert list(sidecar.addresses) == [address], "it listens now"
                held = gcspy("holders", address, "--type", "Order", "--hold", "--json")
                most = gcspy("dominators", address, "--top", "1")
                why = gcspy("why", address, "--over", "0.5", "--json")
                with connect(address, client="test", wants_control=True):
                    refused = gcspy("why", address)
        finally:
            target.kill()
    found = json.loads(held.stdout)
    assert found["session"] == address
    row = found["rows"][0]
    assert (row["holder"], row["objects"]) == ("__main__.AUDIT", 5000)
    assert "held for" in found["note"]
    assert most.stdout.splitlines()[1].startswith("__main__.AUDIT")
    found = json.loads(why.stdout)
    assert found["session"] == address
    assert {row["what"]: row["objects"] for row in found["memory"]["rows"]}["Order"] == 5000
    assert (
        found["memory"]["rest"]["bytes"] + sum(row["bytes"] for row in found["memory"]["rows"])
        == found["resident"]
    )
    assert found["growth"]["seconds"] >= 0.5
    assert refused.returncode == ExitCode.NO_CONNECTION
    assert "only the client that controls the session" in refused.stderr
    assert "hand over its control" in refused.stderr


WELCOME = m.Welcome(
    server="CPython 3.12, pid 7",
    session="identity",
    client_id=1,
    controller=True,
    mode=Mode.PASSIVE,
    pause_acts_on=PauseActsOn.SAMPLING,
    events=(),
)
EVIL = "\x1b]0;owned\x07 \u202e\n[+] forged"


def columns(*names: str) -> DetailTable:
    """A table without rows, whose first column is of texts."""
    kinds = {"What": ColumnKind.TEXT, "Holder": ColumnKind.TEXT, "Type": ColumnKind.TEXT}
    return DetailTable(
        columns=tuple(
            DetailColumn(name=name, kind=kinds.get(name, ColumnKind.NUMBER)) for name in names
        )
    )


def report(*, later: bool = False) -> MemoryReport:
    """What an honest server sends about nothing."""
    grew = ("Grew",) if later else ()
    return MemoryReport(
        secs=1.0 if later else 0.0,
        resident=1000,
        grew=5 if later else None,
        memory=columns("What", "Objects", "Bytes", *grew),
        holders=columns("Holder", "Type", "Objects", "Retained", *grew),
        sites=columns("What"),
        unsure=0,
        note="",
    )


def told(state: AnswerState, found: MemoryReport | None = None, reason: str = "") -> m.Answer:
    return m.Answer(number=1, space=0, sequence=1, state=state, reason=reason, report=found)


FIRST = told(AnswerState.UNDER_WAY, report())


@pytest.mark.parametrize(
    ("answers", "code", "words"),
    [
        ([told(AnswerState.ANSWERED)], ExitCode.PROTOCOL, "without a report"),
        ([FIRST, FIRST, FIRST], ExitCode.PROTOCOL, "where"),
        (
            [FIRST, told(AnswerState.UNDER_WAY, report(later=True)), FIRST],
            ExitCode.PROTOCOL,
            "more reports than samples",
        ),
        (
            [told(AnswerState.ANSWERED, replace(report(), memory=columns("What", "Bytes")))],
            ExitCode.PROTOCOL,
            "columns",
        ),
        (
            [told(AnswerState.ANSWERED, replace(report(), grew=1))],
            ExitCode.PROTOCOL,
            "sample 1 was expected",
        ),
        (
            [FIRST, told(AnswerState.ANSWERED, replace(report(later=True), secs=0.0))],
            ExitCode.PROTOCOL,
            "sample 2 was expected",
        ),
        (
            [told(AnswerState.UNKNOWN, reason="the current level gathers no such data")],
            ExitCode.FAILED,
            "if its gcspy is older",
        ),
        ([told(AnswerState.REFUSED, reason=EVIL)], ExitCode.NO_CONNECTION, "refused"),
        ([FIRST, m.Goodbye()], ExitCode.NO_CONNECTION, "ended without an answer"),
    ],
)
def test_a_server_that_answers_anything_else_is_blamed_in_one_line(
    answers: list[m.Answer], code: ExitCode, words: str, place: Path, here: Run
) -> None:
    with SpeakingServer(place / "s", [WELCOME, *answers]) as server:
        done = here("why", server.address, "--over", "0.1")
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\n[+]" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_texts_of_a_server_are_printed_as_what_they_are(place: Path, here: Run) -> None:
    evil = replace(
        report(),
        note=EVIL,
        memory=replace(columns("What", "Objects", "Bytes"), rows=((EVIL, 1, 2),), note=EVIL),
        holders=replace(
            columns("Holder", "Type", "Objects", "Retained"), rows=((EVIL, EVIL, 1, 1 << 62),)
        ),
        sites=replace(columns("What"), note=EVIL),
    )
    later = replace(
        evil,
        secs=1e9,
        grew=1 << 62,
        memory=replace(columns("What", "Objects", "Bytes", "Grew"), rows=((EVIL, 1, 2, 1 << 62),)),
        holders=replace(
            columns("Holder", "Type", "Objects", "Retained", "Grew"),
            rows=((EVIL, EVIL, 1, 1, 1 << 62),),
        ),
    )
    answers = [told(AnswerState.UNDER_WAY, evil), told(AnswerState.ANSWERED, later)]
    with SpeakingServer(place / "s", [WELCOME, *answers]) as server:
        done = here("why", server.address, "--over", "0.1")
    assert done.returncode == ExitCode.OK, done.stderr
    assert "owned" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "\n[+]" not in done.stdout
