"""A class as one window sees it: who is present, who leads, whether this window follows, and where it looks.

Places come from strangers by way of a server: what of them is not here (a space, a tile, an event before this window came) is
left as it is, and said.

Knows what was told; does not know widgets, nor how anything is shown.
"""

from __future__ import annotations

import getpass
from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from gcspy_protocol.attendance import Focus, person_name
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Client, Event

from gcspy_client.model.session import ClientSession

__all__ = [
    "ClassOptions",
    "Moments",
    "Participant",
    "leader_of",
    "login_name",
    "place_of",
    "roster",
    "summary_words",
]

_MOST_MOMENTS = 1 << 20
"""Events whose moments are remembered: a day at ten a second, in 16 MB."""


def login_name() -> str:
    """What a person is called who has not said so: the name of the login; empty where there is none."""
    try:
        return person_name(getpass.getuser())
    except (OSError, KeyError, ImportError):
        return ""  # no such user, as in some containers


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassOptions:
    """What whoever opens a window wants of a class.

    Attributes:
        person: Name for the others; empty: as stored, else the login's.
        following: Whether to follow who leads from the beginning.
        successor: Who shall inherit control, by name, as soon as one of that name is there; empty: nobody.
        addresses: Where others join.
    """

    person: str = ""
    following: bool = False
    successor: str = ""
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Participant:
    """One who is present.

    Attributes:
        number: Number of the client.
        name: What is shown: the person's name, else the program's; two of one name have their numbers behind it.
        ours: Whether it is this window.
        leads: Whether it is whom the others follow.
        controls: Whether it controls what this window sees.
        succeeds: Whether it inherits control.
        following: Whether it follows.
        behind: Events that it had not read; None: unknown.
        stalled: Whether it has read nothing for seconds.
    """

    number: int
    name: str
    ours: bool
    leads: bool
    controls: bool
    succeeds: bool
    following: bool
    behind: int | None
    stalled: bool

    @property
    def role(self) -> str:
        """What it is, in a word or two."""
        if self.leads:
            return "leads"
        if self.succeeds:
            return "successor"
        return "follows" if self.following else "roams"

    @property
    def reading(self) -> str:
        """How far it has read, in words."""
        if self.stalled:
            return "stalled" if self.behind is None else f"stalled, {self.behind:,} behind"
        if self.behind is None:
            return "–"
        return "up to date" if not self.behind else f"{self.behind:,} behind"


def leader_of(live: ClientInterpreter) -> int | None:
    """Number of whom the class follows; None: nobody leads."""
    clients = live.clients
    return clients.leader if clients.leader is not None else clients.controller


def roster(live: ClientInterpreter) -> list[Participant]:
    """Who is present: who leads first, then this window, then the others by name."""
    ours = None if live.welcome is None else live.welcome.client_id
    leader = leader_of(live)
    clients = live.clients
    names = [(_name(one), one) for one in clients.clients]
    often = Counter(name for name, _ in names)
    participants = [
        Participant(
            number=one.id,
            name=f"{name} ({one.id})" if often[name] > 1 else name,
            ours=one.id == ours,
            leads=one.id == leader,
            controls=one.id == clients.controller,
            succeeds=one.id == clients.successor,
            following=one.following,
            behind=one.behind,
            stalled=one.stalled,
        )
        for name, one in names
    ]
    return sorted(
        participants,
        key=lambda participant: (
            not participant.leads,
            not participant.ours,
            participant.name.casefold(),
            participant.number,
        ),
    )


def _name(client: Client) -> str:
    """What a client is called; a server's word for it is not taken unseen."""
    return person_name(client.person) or person_name(client.name) or f"client {client.id}"


def summary_words(participants: list[Participant]) -> str:
    """How many are present, and how they are."""
    if len(participants) < 2:
        return "No other participants."
    parts = [f"{len(participants)} present"]
    for count, words in (
        (
            sum(participant.following and not participant.leads for participant in participants),
            "follow",
        ),
        (
            sum(
                bool(participant.behind) and not participant.stalled for participant in participants
            ),
            "behind",
        ),
        (sum(participant.stalled for participant in participants), "stalled"),
    ):
        parts += [f"{count} {words}"] if count else []
    return ", ".join(parts)


class Moments:
    """When events were, by their sequence: another window's event is found by it in what this one has kept."""

    def __init__(self) -> None:
        self._sequences: array[int] = array("q")
        self._times: array[int] = array("q")

    def clear(self) -> None:
        """Forget all: it is another session."""
        del self._sequences[:], self._times[:]

    def add(self, event: Event) -> None:
        """An event came."""
        if self._sequences and event.sequence <= self._sequences[-1]:
            return
        if len(self._sequences) >= _MOST_MOMENTS:
            del self._sequences[: _MOST_MOMENTS // 4], self._times[: _MOST_MOMENTS // 4]
        self._sequences.append(event.sequence)
        self._times.append(event.time_nanos)

    def time_of(self, sequence: int) -> int | None:
        """When the event was, or the last one before it that came here; None where none did."""
        place = bisect_left(self._sequences, sequence + 1) - 1
        return None if place < 0 else self._times[place]


def place_of(session: ClientSession, panel: str) -> Focus:
    """Where this window looks.

    Args:
        session: Its session.
        panel: Name of the panel in front.
    """
    space = session.active_space()
    event = session.interpreter.last_event
    sequence = None if session.is_live or event is None else event.sequence
    if space is None:
        return Focus(panel=panel, sequence=sequence)
    number = space.space.id
    return Focus(
        space=number,
        stream=session.chosen_stream(number),
        key=session.selected_key(number),
        view=session.looks.of(number).view,
        panel=panel,
        sequence=sequence,
    )
