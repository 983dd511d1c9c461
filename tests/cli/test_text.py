"""A session as text: what a script can rely on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.connection import Connection
from gcspy_protocol.expression import Operand
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Fired, Trigger
from gcspy_protocol.model import (
    EventKind,
    Mode,
    Naming,
    PauseActsOn,
    Presentation,
    Role,
    Space,
    Stream,
)
from gcspy_protocol.triggers import TriggerAction

from gcspy.output.session_text import (
    event_as_dict,
    event_as_lines,
    fired_as_line,
    info_lines,
    unit_of,
)
from gcspy_server.api import Server, StringNames, UniformNames
from tests.cli.conftest import Run

_NONE = np.empty(0, dtype=np.uint32)


def _session(known: list[bool] | None, covered: int) -> tuple[ClientInterpreter, m.Event]:
    session = ClientInterpreter()
    used = Stream(
        id=0, name="Used", suffix=" bytes", presentation=Presentation.PERCENT, maximum=100
    )
    kind = Stream(
        id=1, name="Kind", presentation=Presentation.ENUM, enum_names=("free", "small", "large")
    )
    event = m.Event(
        sequence=7,
        time_nanos=5,
        event=0,
        occurrence=9,
        epoch=1,
        gather_nanos=2_000_000,
        cause="because",
    )
    stamp = {"space": 3, "sequence": 7, "time_nanos": 5}
    mask = None if known is None else np.array(known)
    for message in (
        m.Welcome(
            server="s",
            session="x",
            client_id=1,
            controller=False,
            mode=Mode.PASSIVE,
            pause_acts_on=PauseActsOn.SAMPLING,
            events=(EventKind(id=0, name="Clock"),),
        ),
        m.SpaceDefined(space=Space(id=3, name="Arenas", streams=(used, kind))),
        m.EpochEnd(epoch=1),
        m.Tiles(
            space=3,
            count=3,
            old_starts=_NONE,
            new_starts=_NONE,
            lengths=_NONE,
            naming=Naming.UNIFORM,
        ),
        m.StreamKey(
            stream=0, event=0, occurrence=9, values=np.array([1, 2, 3], "<i4"), known=mask, **stamp
        ),
        m.Summary(stream=0, values=(6, 300), covered=covered, **stamp),
        m.Summary(stream=1, values=(0, 1, 2), covered=3, **stamp),
        event,
    ):
        session.apply(message)
    return session, event


def test_an_event_is_one_json_object_with_summaries() -> None:
    session, event = _session(None, covered=3)
    out = json.loads(json.dumps(event_as_dict(session, event)))
    assert (out["event"], out["occurrence"], out["cause"], out["acts_on"]) == (
        "Clock",
        9,
        "because",
        "sampling",
    )
    (space,) = out["spaces"]
    assert (space["name"], space["tiles"]) == ("Arenas", 3)
    used, kind = space["streams"]
    assert (used["name"], used["unit"], used["summary"], used["fresh"]) == (
        "Used",
        "bytes",
        [6, 300],
        True,
    )
    assert "values" not in used
    assert (kind["summary"], kind["summary_names"]) == ([0, 1, 2], ["free", "small", "large"])
    assert kind["fresh"] is False, "no values of this stream came with the event"


def test_unknown_values_are_null_and_never_zero() -> None:
    session, event = _session([True, False, True], covered=2)
    used = event_as_dict(session, event, values=True)["spaces"][0]["streams"][0]
    assert used["values"] == [1, None, 3]
    assert used["unknown"] == 1


def test_a_summary_that_covers_no_tile_is_null() -> None:
    session, event = _session([False, False, False], covered=0)
    assert event_as_dict(session, event)["spaces"][0]["streams"][0]["summary"] is None
    assert "Used unknown" in "\n".join(event_as_lines(session, event))


def test_lines_name_event_space_and_share() -> None:
    session, event = _session(None, covered=3)
    text = "\n".join(event_as_lines(session, event))
    assert "Clock #9" in text
    assert "because" in text
    assert "Used 6 of 300 bytes (2.0 %)" in text
    assert "Kind: 2 × large / 1 × small (stale)" in text


def test_what_a_space_says_is_a_line_when_it_says_something_else_than_other_numbers() -> None:
    session, _ = _session(None, 3)
    told: dict[int, str] = {}

    def said(text: str) -> list[str]:
        session.apply(m.SpaceInfo(space=3, sequence=7, time_nanos=5, text=text))
        return info_lines(session, told)

    assert info_lines(session, told) == []
    assert said("1,204 objects") == ["  Arenas: 1,204 objects"]
    assert said("1,300 objects") == []
    assert said("7 objects; loops are being compiled\x1b[2J") == [
        "  Arenas: 7 objects; loops are being compiled\\x1b[2J"
    ]
    assert said("8 objects") == ["  Arenas: 8 objects"]
    assert said("") == ["  Arenas: nothing more to say"]
    assert said("") == []


def test_the_unit_is_the_suffix_then_the_prefix() -> None:
    assert unit_of(Stream(id=0, name="a", suffix=" bytes", prefix="Used: ")) == "bytes"
    assert unit_of(Stream(id=0, name="a", prefix="Blocks: ")) == "Blocks"


def test_what_fired_is_one_line_with_the_numbers_that_its_condition_was_made_of() -> None:
    trigger = Trigger(id=2, expression="sum(a) > 5", action=TriggerAction.NOTE)
    operands = (
        Operand("sum(a)", 12345, 3, 4),
        Operand("was(sum(a))", None),
        Operand("mean(a)", 0.5),
    )
    fired = Fired(
        trigger=trigger, sequence=1, time_nanos=1, event=0, occurrence=1, operands=operands
    )
    wanted = (
        "  trigger 2 (note): sum(a) > 5  [sum(a) = 12,345, was(sum(a)) = unknown, mean(a) = 0.5]"
    )
    assert fired_as_line(fired) == wanted
    noted = replace(fired, trigger=replace(trigger, note="too\n\x1b[31mmuch"), operands=())
    assert fired_as_line(noted) == "  trigger 2 (note): too\\n\\x1b[31mmuch"


def test_with_values_come_the_texts_that_tiles_are_called_by() -> None:
    server = Server("test", events=["Clock"])
    classes = server.add_space("Classes", names=StringNames(["int[]", "String", "Object"]))
    heap = server.add_space("Heap", names=UniformNames(0, 8, 2))
    objects = classes.add_stream("Objects", dtype="u4", maximum=1000)
    top = heap.add_stream("Top class", dtype="u2", maximum=2, names_from=classes.id)
    received: list[bytes] = []
    server.deliver_to(received.append)
    assert server.should_transmit(0)
    objects.data[:], top.data[:] = [3, 1, 2], [2, 0]
    server.finish(0)
    connection, session = Connection(Role.CLIENT), ClientInterpreter()
    connection.receive_data(b"".join(received))
    for message in connection.messages():
        session.apply(message)
    assert session.last_event is not None
    first, second = event_as_dict(session, session.last_event, values=True)["spaces"]
    assert first["tile_names"] == ["int[]", "String", "Object"]
    assert dict(zip(first["tile_names"], first["streams"][0]["values"], strict=True)) == {
        "int[]": 3,
        "String": 1,
        "Object": 2,
    }
    assert (second["streams"][0]["values"], second["streams"][0]["names_from"]) == (
        [2, 0],
        "Classes",
    )
    assert "tile_names" not in second
    assert "tile_names" not in event_as_dict(session, session.last_event)["spaces"][0]


def test_tail_asks_for_the_texts_of_a_space_that_is_too_large_to_be_sent_them(
    tmp_path: Path, gcspy: Run
) -> None:
    count = 3 * CLIENT_LIMITS.names_page // 2
    server = Server("test", events=["Clock"])
    space = server.add_space("Classes", names=StringNames([f"class {n}" for n in range(count)]))
    objects = space.add_stream("Objects", dtype="u4", maximum=count)
    server.add_observer(lambda _event: None)
    with server.serve(f"unix:{tmp_path}/session") as listening:
        assert server.should_transmit(0)
        objects.data[:] = np.arange(count)
        server.finish(0)
        done = gcspy("tail", listening.addresses[0], "--json", "--values", "--events", "1")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["spaces"]
    assert found["tile_names"] == [f"class {value}" for value in found["streams"][0]["values"]]
