"""Texts of the panels of facts: times, traffic and stored events; values that are not known are reported as unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.model import Space, Stream

from gcspy_client.model.panels.facts import (
    PanelFact,
    connection_facts,
    facts_text,
    general_facts,
    timer_facts,
)
from gcspy_client.model.playback.time_shift import ShiftStatus, StorageState
from gcspy_client.model.playback.timers import Timers
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_meter import GatheringCost, LinkMeter, Rates
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from tests.client.feeding import Feed, follow

MILLIS = 1_000_000
HEAP = Space(
    id=1,
    name="Heap",
    driver="cpython",
    description="all of it",
    streams=(Stream(id=1, name="Used", maximum=9), Stream(id=2, name="Free", maximum=9)),
)
TIMES = Timers(
    first=1,
    last=2,
    elapsed_nanos=100 * MILLIS,
    gathering_nanos=6 * MILLIS,
    held_nanos=4 * MILLIS,
    missed=0,
)
NO_RATES = Rates(events=None, wire_bytes=None)
NOT_KEPT = ShiftStatus(
    keeping=StorageState.OFF,
    reason="",
    first=0,
    last=0,
    memory_bytes=0,
    most_memory_bytes=0,
    disk_bytes=0,
    waiting_bytes=0,
)
KEPT = replace(NOT_KEPT, keeping=StorageState.ON)


def texts(facts: list[PanelFact]) -> dict[str, str | None]:
    return {fact.name: fact.text for fact in facts}


def session(events: int = 1, **more: Space) -> ClientSession:
    feed = Feed(spaces=(more.get("space", HEAP),), counts={1: 12_000})
    made = ClientSession()
    follow(made, feed.bootstrap())
    for _ in range(events):
        follow(made, feed.event({(1, 1): np.zeros(12_000, dtype=np.int64)}))
    return made


def connection(
    of: ClientSession,
    status: LinkStatus | None = None,
    meter: LinkMeter | None = None,
    rates: Rates = NO_RATES,
    shift: ShiftStatus = NOT_KEPT,
    *,
    held: bool = False,
    version: int | None = None,
) -> dict[str, str | None]:
    status = LinkStatus(phase=LinkPhase.LIVE) if status is None else status
    meter = LinkMeter() if meter is None else meter
    return texts(connection_facts(of, status, meter, rates, shift, held=held, version=version))


# ------------------------------------------------------------------------------ timers


@pytest.mark.parametrize(
    ("first", "last", "an_event"),
    [(7, 7, "6.00 ms"), (7, 8, "6.00 ms"), (7, 9, "3.00 ms"), (1, 4, "2.00 ms")],
)
def test_gathering_is_told_by_event_after_the_first(first: int, last: int, an_event: str) -> None:
    facts = texts(timer_facts(replace(TIMES, first=first, last=last)))
    assert facts == {
        f"From event {first} to event {last}": None,
        "Elapsed": "100 ms",
        "Compensation": "10.0 ms",
        "  gathering": f"6.00 ms  ({an_event} an event)",
        "  held": "4.00 ms",
        "Difference": "90.0 ms",
    }


def test_with_events_that_were_missed_the_times_are_bounds() -> None:
    found = timer_facts(replace(TIMES, missed=1234))
    facts = texts(found)
    assert facts["Compensation"] == "≥ 10.0 ms"
    assert facts["  gathering"] == "≥ 6.00 ms  (6.00 ms an event)"
    assert facts["Difference"] == "≤ 90.0 ms"
    assert sum(fact.tip.startswith("1,234 events in between were missed") for fact in found) == 3


def test_the_program_never_ran_for_less_than_nothing_and_no_timers_say_nothing() -> None:
    assert texts(timer_facts(replace(TIMES, elapsed_nanos=3)))["Difference"] == "0 ns"
    assert timer_facts(None) == []


# ------------------------------------------------------------------------- connection


def test_clients_are_counted_and_the_one_that_controls_is_named() -> None:
    assert connection(session())["Clients"] == "2: this (1, controls), other (2)"
    nobody = ClientSession()
    follow(nobody, [one for one in Feed((), {}).bootstrap() if not isinstance(one, m.Clients)])
    assert connection(nobody)["Clients"] == "–"


def test_what_is_not_known_of_a_connection_is_said_to_be_unknown() -> None:
    facts = connection(session(), LinkStatus(phase=LinkPhase.CONNECTING))
    assert facts == {
        "Connection": None,
        "Address": "–",
        "State": "connecting",
        "Protocol": "–",
        "Round trip": "–",
        "Clients": "2: this (1, controls), other (2)",
        "Traffic": None,
        "Events": "–  (0 in all)",
        "Bytes": "–  (0 B in all)",
        "Compression": "–",
        "Missed events": "0",
        "Waiting here": "0 B",
        "Lossless holds": "none",
        "Kept": "this session is already a recording",
        "Gathering  (mean, longest)": None,
        "no event yet": "–",
    }


def test_what_is_known_of_a_connection_is_told() -> None:
    meter = LinkMeter(
        wire_bytes=2048,
        plain_bytes=8192,
        events=1500,
        missed=2000,
        waited_nanos=3 * MILLIS,
        gathered={
            1: GatheringCost(events=4, nanos=20 * MILLIS, most_nanos=9 * MILLIS),
            0: GatheringCost(events=2, nanos=6 * MILLIS, most_nanos=4 * MILLIS),
        },
        round_trip_nanos=5 * MILLIS,
    )
    facts = connection(
        session(),
        LinkStatus(phase=LinkPhase.LIVE, address="unix:/s", message="all is well"),
        meter,
        Rates(events=12.34, wire_bytes=1024.0),
        replace(NOT_KEPT, waiting_bytes=3072),
        held=True,
        version=2,
    )
    assert list(facts.items())[1:5] == [
        ("Address", "unix:/s"),
        ("State", "connected: all is well"),
        ("Protocol", "version 2"),
        ("Round trip", "5.00 ms"),
    ]
    assert list(facts.items())[7:] == [
        ("Events", "12.3 /s  (1,500 in all)"),
        ("Bytes", "1.0 KiB/s  (2.0 KiB in all)"),
        ("Compression", "4.0 : 1"),
        ("Missed events", "2,000"),
        ("Waiting here", "3.0 KiB, reading holds"),
        ("Lossless holds", "3.00 ms in all"),
        ("Kept", "this session is already a recording"),
        ("Gathering  (mean, longest)", None),
        ("Clock", "3.00 ms, 4.00 ms"),
        ("Collection", "5.00 ms, 9.00 ms"),
    ]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (LinkStatus(phase=LinkPhase.IDLE), False),
        (LinkStatus(phase=LinkPhase.IDLE, address="unix:/s"), True),
        (LinkStatus(phase=LinkPhase.LIVE), True),
    ],
)
def test_a_window_that_was_never_connected_says_nothing(status: LinkStatus, said: bool) -> None:
    assert bool(connection(session(), status)) is said


@pytest.mark.parametrize(
    ("shift", "said"),
    [
        (replace(KEPT, first=11, last=1510, memory_bytes=4096), "1,500 events, 4.0 KiB in memory"),
        (
            replace(KEPT, first=1, last=1, memory_bytes=1024, disk_bytes=2048),
            "1 events, 1.0 KiB in memory, 2.0 KiB on disk",
        ),
        (KEPT, "0 events, 0 B in memory"),
        (replace(KEPT, keeping=StorageState.ENDED, reason="the disk is full"), "the disk is full"),
        (replace(NOT_KEPT, keeping=StorageState.WAITING), "no event received yet"),
    ],
)
def test_what_is_kept_is_counted_or_said_why_not(shift: ShiftStatus, said: str) -> None:
    assert connection(session(), shift=shift)["Kept"] == said


# ---------------------------------------------------------------------------- general


def test_target_and_spaces_are_introduced() -> None:
    facts = texts(general_facts(session()))
    assert facts["Name"] == "CPython 3.12.1, pid 4711"
    assert facts["Events"] == "Clock, Collection"
    assert (facts["Heap"], facts["Tiles"], facts["First tile"]) == (
        None,
        "12,000",
        "[0x10000, 0x11000)",
    )
    assert (facts["Driver"], facts["About"]) == ("cpython", "all of it")
    assert facts["Streams"] == "Used, Free"
    assert "Now" not in facts
    assert general_facts(ClientSession()) == []
    before = texts(general_facts(session(events=0)))
    assert before["Began"] == "–"
    assert "First tile" not in before


def test_facts_are_copied_in_columns_under_their_headings() -> None:
    facts = [PanelFact("Times"), PanelFact("Held", "3 s"), PanelFact("Gathering", "1 s"), PanelFact("Traffic"),
             PanelFact("All", "9")]  # fmt: skip
    assert facts_text(facts) == (
        "Times\n  Held       3 s\n  Gathering  1 s\n\nTraffic\n  All        9\n"
    )
