"""What the window asks of the program that opened it: which processes there are, how to watch one, how to play a file.

The client knows neither drivers nor players. Whoever opens the window (`gcspy.hosts.launcher`) hands it these, and it starts them as
children: each reads one line, answers with one line of JSON, and lives until its standard input is closed.

Knows command lines; does not know what they start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["FrontDoor", "Launch", "Offer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """A child that serves a session.

    Attributes:
        command: The program and its arguments.
        line: What it reads first; it may hold a secret, so it is no argument.
        title: What is being done, for the user: *Attaching to process 12*.
        files: The recording it plays, if it plays one.
    """

    command: tuple[str, ...]
    line: str = field(repr=False)
    title: str
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """A recording that is there for a first look.

    Attributes:
        path: Of the file.
        title: A few words.
        about: A sentence.
    """

    path: Path
    title: str
    about: str


def _nothing() -> Sequence[Offer]:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontDoor:
    """What can be started from a window.

    Attributes:
        processes: The command that lists processes as JSON; with `everything` behind it also those that nobody knows.
        everything: Its further argument.
        attach: From a process to the child that watches it, or to the address where somebody watches it already.
        attach_with: The same with values of drivers' options, ``DRIVER.NAME=VALUE``; None: they cannot be chosen.
        play: From the files of a recording to the child that plays it.
        demo: The child that watches a program made for a first look; None: there is none.
        samples: The recordings that are installed.
        another: The command that opens another window.
    """

    processes: tuple[str, ...]
    everything: str
    attach: Callable[[int], Launch | str]
    play: Callable[[tuple[Path, ...]], Launch]
    attach_with: Callable[[int, tuple[str, ...]], Launch | str] | None = None
    demo: Launch | None = None
    samples: Callable[[], Sequence[Offer]] = _nothing
    another: tuple[str, ...] = ()
