"""The base class of programs for a simulated heap, and the runner of its threads.

A program is a class with `work`, a generator: it makes objects, links and drops them, and yields wherever it may be stopped. Each thread runs one; they take
turns in a fixed order, so the same seed gives the same heap. A program reads its knobs while it works: a changed knob takes effect at the
next turn.

Knows the mutator, through `stack`. Knows no collector.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.heap import WORD_BYTES
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import Choice, Knob, OutOfHeap
from gcspy_drivers.simulator.programs.stack import Stack
from gcspy_drivers.simulator.user_code.guard import StepGuard
from gcspy_drivers.simulator.user_code.source import UserFile

__all__ = ["Program", "ProgramRun", "from_file"]

_OVER: Final = object()


class Program(ABC):
    """A program; derive from it, set `name` and `title`, and write `work`.

    Class attributes:
        name: One word; title: for people.
        about: Its behaviour, and which property of collectors it shows.
        settings: Its knobs with their initial values.
        guard: Runs its code if it is in a user's file; None: it is ours.
        kinds: Kinds of event of its own.

    Attributes:
        mutator: The mutator whose heap it uses.
        dice: The only permitted source of random numbers.
        live_bytes: Bytes that it aims to keep alive in all, for programs that have a size: the knob ``live``, in percent of the heap.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str] = ""
    settings: ClassVar[Sequence[Knob]] = ()
    guard: ClassVar[StepGuard | None] = None
    kinds: ClassVar[Sequence[str]] = ()

    def __init__(self, mutator: Mutator) -> None:
        self.mutator = mutator
        self.dice: np.random.Generator = mutator.dice
        self._values: dict[str, int] = {}

    @abstractmethod
    def work(self, stack: Stack) -> Iterator[None]:
        """Do the work of one thread; yield every some dozen objects."""

    def happened(self) -> Sequence[tuple[str, str]]:
        """Return its events since the last call: the kind, and what caused it."""
        return ()

    def value(self, name: str) -> int:
        """Return what a knob stands at; of one that has names, the place of the name."""
        if name in self._values:
            return self._values[name]
        knob = next(one for one in self.settings if one.name == name)
        if isinstance(knob.values, Choice):
            return knob.values.names.index(str(knob.value))
        return int(knob.value)

    def knobs(self) -> Sequence[Knob]:
        """Return its knobs, as they stand."""
        return tuple(
            one._replace(
                value=one.values.names[self.value(one.name)]
                if isinstance(one.values, Choice)
                else self.value(one.name)
            )
            for one in self.settings
        )

    def turn(self, name: str, value: int | str) -> None:
        """Change a knob; it takes effect where the program looks next."""
        knob = next((one for one in self.settings if one.name == name), None)
        if knob is None:
            raise LocalProtocolError(
                f"{self.name} has no knob {name!r}: it has {', '.join(one.name for one in self.settings) or 'none'}"
            )
        if isinstance(knob.values, Choice):
            if value not in knob.values.names:
                raise LocalProtocolError(
                    f"{name} of {self.name} cannot be {value!r}: give one of {', '.join(map(repr, knob.values.names))}"
                )
            self._values[name] = knob.values.names.index(str(value))
            return
        low, high = knob.values
        if not isinstance(value, int) or not low <= value <= high:
            raise LocalProtocolError(
                f"{name} of {self.name} cannot be {value!r}: give a number from {low} to {high}"
            )
        self._values[name] = value

    @property
    def live_bytes(self) -> int:
        """Bytes to keep alive by one thread, by the knob ``live``."""
        return (
            self.mutator.plan.heap_words
            * WORD_BYTES
            * self.value("live")
            // 100
            // self.mutator.plan.threads
        )

    def chance(self, percent: float) -> bool:
        """Throw the dice: be true so often."""
        return bool(self.dice.random() * 100 < percent)

    def up_to(self, most: int) -> int:
        """Throw the dice: a number from 0 to below `most`."""
        return int(self.dice.integers(most))


class ProgramRun:
    """A program under way, with one worker a thread of the plan.

    Attributes:
        program: The program to run.
        turns: How many turns were done.
        over: Whether all workers have ended by themselves.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.turns = 0
        self._workers = [
            program.work(Stack(program.mutator, thread))
            for thread in range(program.mutator.plan.threads)
        ]

    @property
    def over(self) -> bool:
        """Whether nobody works any more."""
        return not self._workers

    def step(self) -> bool:
        """Let one thread work up to where it may be stopped; tell whether there is more to do.

        Raises:
            OutOfHeap: There was no room: the program has ended.
            CommandError: Code in a user's file has a mistake; with the line.
        """
        if not self._workers:
            return False
        at = self.turns % len(self._workers)
        self.turns += 1
        guard = self.program.guard
        going_on = (
            next(self._workers[at], _OVER) is not _OVER
            if guard is None
            else guard.step(self._workers[at])
        )
        if not going_on:
            del self._workers[at]
        return bool(self._workers)

    def close(self) -> None:
        """End the workers: what they held is dropped."""
        for worker in self._workers:
            close = getattr(worker, "close", None)
            if close is not None:
                close()
        self._workers = []


def from_file(path: str) -> type[Program]:
    """Return the program that a Python file of the user's has: the class derived from `Program`, or made of its function ``work(stack, dice)``.

    The file is run: it is the user's own, as any script is.

    Raises:
        CommandError: The file has an error; with the line.
    """
    file = UserFile(path, "program", (OutOfHeap,))
    for one in vars(file.module).values():
        if (
            isinstance(one, type)
            and issubclass(one, Program)
            and one is not Program
            and not inspect.isabstract(one)
        ):
            one.guard = file.guard
            return one
    function = file.steps("work", "stack", "dice")

    class FromFile(Program):
        name = file.path.stem
        title = file.title
        about = file.about
        guard = file.guard

        def work(self, stack: Stack) -> Iterator[None]:
            yield from function(stack, self.dice)

    return FromFile
