"""The conditions that the documents, the helps and the hints show: each fires in a real session of a Python program."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import ExpressionError
from gcspy_protocol.expression import parse_condition
from gcspy_protocol.expression.nodes import EventFact, Name, Node, children
from gcspy_protocol.model import ControlState
from gcspy_protocol.triggers import TriggerAction, TriggerState

from gcspy.cli import gcspy as command_line
from gcspy.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.cli.test_conditions import served, viewer
from tests.drivers.targets import StillTarget

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    "docs/expressions.md",
    "docs/triggers.md",
    "docs/guide.md",
    "docs/recordings.md",
    "gcspy_client/guide/pages/60-triggers.md",
)

PROGRAM = """
import gc
held = []
print("ready", flush=True)
for line in sys.stdin:
    if line.startswith("grow"):
        held = [bytes(400) for _ in range(250_000)]
    elif line.startswith("free"):
        held = held[::2000]
    else:
        gc.collect()
    print("done", flush=True)
"""
"""Fills 100 MB of arenas on request, keeps a few objects in each of them, collects."""


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from nodes(child)


def is_condition(text: str) -> bool:
    """Whether it is a condition about a session: not a shell's redirection, not a number."""
    try:
        root = parse_condition(text).root
    except ExpressionError:
        return False
    return any(isinstance(node, (Name, EventFact)) for node in nodes(root))


def conditions_in(text: str) -> Iterator[str]:
    """Whatever a reader could copy: code, lines of code blocks up to a comment, quoted arguments."""
    spans = re.findall(r"`([^`\n]+)`", text)
    spans += [re.split(r" {3,}", line.strip())[0] for line in text.splitlines()]
    spans += [
        one
        for pair in re.findall(r"'([^\n]+?)'(?=[.\s`]|$)|\"([^\n]+)\"$", text, re.M)
        for one in pair
    ]
    return (span.strip() for span in spans if is_condition(span.strip()))


def helps() -> Iterator[str]:
    """The text of each option of each command."""
    found: list[tuple[str, click.Command]] = [("gcspy", command_line)]
    while found:
        name, command = found.pop()
        context = click.Context(command, info_name=name)
        for parameter in command.params:
            yield getattr(parameter, "help", None) or ""
        yield command.help or ""
        if isinstance(command, click.Group):
            for sub in command.list_commands(context):
                made = command.get_command(context, sub)
                assert made is not None
                found.append((sub, made))


@contextmanager
def program() -> Iterator[StillTarget]:
    target = StillTarget(sys.executable, PROGRAM)
    try:
        assert target.read_line() == "ready"
        yield target
    finally:
        target.end()


def ask(target: StillTarget, request: str) -> None:
    target.say(request)
    assert target.read_line() == "done"


SHOWN = sorted(
    {
        *(one for name in DOCUMENTS for one in conditions_in((ROOT / name).read_text())),
        *(one for text in helps() for one in conditions_in(text)),
    }
)


@pytest.fixture
def sockets() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="gcspy-test-"))
    yield directory
    shutil.rmtree(directory)


def test_conditions_are_found_where_they_are_shown() -> None:
    assert 'sum("pymalloc arenas".Used) > 64MiB' in {
        one for text in helps() for one in conditions_in(text)
    }
    for name in ("docs/expressions.md", "docs/triggers.md", "docs/guide.md"):
        assert list(conditions_in((ROOT / name).read_text())), name
    assert "gather_ms > 1" in SHOWN
    assert "event == 'Clock'" in SHOWN
    assert any("share(" in one for one in SHOWN)
    assert any("was(" in one for one in SHOWN)


def test_each_condition_that_is_shown_fires_in_a_session_of_a_python_program(
    sockets: Path,
) -> None:
    with (
        program() as target,
        served(target.pid, sockets / "s.sock"),
        viewer(f"unix:{sockets}/s.sock") as client,
    ):
        for number, condition in enumerate(SHOWN, start=1):
            client.send(m.Trigger(id=number, expression=condition, action=TriggerAction.NOTE))
        client.until(lambda: len(client.state.triggers.triggers) == len(SHOWN))
        client.until_events(len(client.changes) + 2)
        states = {one.trigger.expression: one for one in client.state.triggers.triggers}
        assert TriggerState.WAITING not in {one.state for one in states.values()}, states
        for request in ("grow", "free"):
            client.send(m.Pause())
            client.wait_state(ControlState.PAUSED)
            ask(target, request)
            client.send(m.Resume())
            client.until_events(len(client.changes) + 2)

        def left() -> list[str]:
            return [
                one.trigger.expression for one in client.state.triggers.triggers if not one.fired
            ]

        for _ in range(200):
            if not left():
                break
            ask(target, "collect")
            client.event()
        assert left() == []


@pytest.mark.parametrize("command", ["tail", "record", "attach"])
def test_a_name_that_several_spaces_have_is_refused_with_the_words_to_use(
    command: str, gcspy: Run, tmp_path: Path
) -> None:
    more = {
        "tail": ("--until",),
        "record": ("-o", str(tmp_path / "a.gcspy"), "--until"),
        "attach": ("--no-window", "--trigger"),
    }[command]
    with program() as target:
        done = gcspy(command, str(target.pid), *more, "sum(Used) > 1000")
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert done.stdout == ""
    assert 'write "pymalloc arenas".Used or ' in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("*.gcspy"))


def test_a_name_that_does_not_exist_is_said_once_while_tail_waits_for_it(gcspy: Run) -> None:
    with program() as target:
        done = gcspy(
            "tail", str(target.pid), "--until", "sum(Usd) > 1000", "--events", "3", "--clock", "50"
        )
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stderr.count("waits: no space has a stream 'Usd'") == 1


def test_a_trigger_that_waits_is_said_by_tail_with_the_reason(sockets: Path, gcspy: Run) -> None:
    with (
        program() as target,
        served(target.pid, sockets / "s.sock", "--trigger", "sum(Usd) > 1000"),
    ):
        done = gcspy("tail", f"unix:{sockets}/s.sock", "--events", "3")
    assert done.returncode == ExitCode.OK, done.stderr
    said = [line for line in done.stderr.splitlines() if "trigger 1 waits" in line]
    assert len(said) == 1, done.stderr
    assert "no space has a stream 'Usd'" in said[0]
