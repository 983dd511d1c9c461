"""A class as one window sees it: the participants, the leader, whether this window follows, and its place.

Places come from strangers through a server: a part of them that does not exist here (a space, a
tile, an event before this window joined) is ignored, and reported.

Knows the messages; does not know widgets, nor how anything is shown.
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
    """The default name of a person: the login name; empty if there is none."""
    try:
        return person_name(getpass.getuser())
    except (OSError, KeyError, ImportError):
        return ""  # no such user, as in some containers


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassOptions:
    """The class options of a new window.

    Attributes:
        person: Name for the others; empty: as stored, else the login name.
        following: Whether to follow the leader from the beginning.
        successor: Name of the person who shall inherit control, as soon as present; empty: none.
        addresses: Addresses for others to join.
    """

    person: str = ""
    following: bool = False
    successor: str = ""
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Participant:
    """One participant.

    Attributes:
        number: Number of the client.
        name: Displayed name: the person's, else the program's; two equal ones have their numbers
            appended.
        ours: Whether it is this window.
        leads: Whether it is whom the others follow.
        controls: Whether it controls the session that this window sees.
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
        """Its role, in a word or two."""
        if self.leads:
            return "leads"
        if self.succeeds:
            return "successor"
        return "follows" if self.following else "roams"

    @property
    def reading(self) -> str:
        """Progress of its reading, as text."""
        if self.stalled:
            return "stalled" if self.behind is None else f"stalled, {self.behind:,} behind"
        if self.behind is None:
            return "–"
        return "up to date" if not self.behind else f"{self.behind:,} behind"


def leader_of(live: ClientInterpreter) -> int | None:
    """Number of the leader of the class; None: there is none."""
    clients = live.clients
    return clients.leader if clients.leader is not None else clients.controller


def roster(live: ClientInterpreter) -> list[Participant]:
    """The participants: the leader first, then this window, then the others by name."""
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
    """Name of a client; the server's text is sanitised."""
    return person_name(client.person) or person_name(client.name) or f"client {client.id}"


def summary_words(participants: list[Participant]) -> str:
    """Return the number of participants and their states, as text."""
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
    """Times of events, by their sequence: they identify another window's event among the stored ones."""

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
    """The place of this window.

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
