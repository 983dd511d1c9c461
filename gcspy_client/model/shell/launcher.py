"""The requests of the window to the program that opened it: list processes, monitor one, play a file.

The client knows neither drivers nor players. The program that opens the window
(`gcspy.hosts.launcher`) passes these commands, and the window starts them as children: each reads
one line, answers with one line of JSON, and lives until its standard input is closed.

Knows command lines; does not know the programs.
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
        line: Its first input line; it may contain a secret, so it is not an argument.
        title: Description for the user: *Attaching to process 12*.
        files: The recording it plays, if it plays one.
    """

    command: tuple[str, ...]
    line: str = field(repr=False)
    title: str
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """A sample recording.

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
    """The commands that a window can start.

    Attributes:
        processes: The command that prints a line of JSON when a process comes, changes or goes, until
            its standard input ends; with `everything` appended also for unrecognised ones.
        everything: Its further argument.
        attach: From a process to the child that monitors it, or to the address of a server that
            monitors it already.
        attach_with: The same with values of drivers' options, ``DRIVER.NAME=VALUE``, and the names of
            drivers, none: the best one; None: they cannot be chosen.
        play: From the files of a recording to the child that plays it.
        demo: The child that monitors a demonstration program; None: there is none.
        samples: The recordings that are installed.
        another: The command that opens another window.
    """

    processes: tuple[str, ...]
    everything: str
    attach: Callable[[int], Launch | str]
    play: Callable[[tuple[Path, ...]], Launch]
    attach_with: Callable[[int, tuple[str, ...], tuple[str, ...]], Launch | str] | None = None
    demo: Launch | None = None
    samples: Callable[[], Sequence[Offer]] = _nothing
    another: tuple[str, ...] = ()
