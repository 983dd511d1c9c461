"""Checks the claims of a lesson: what its texts say, as conditions on the values at its steps in a recording of it.

Knows lessons and recordings; does not know how a lesson is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gcspy_protocol.errors import CommandError, ExpressionError, UnknownName
from gcspy_protocol.expression import Evaluator, bind, parse_condition
from gcspy_protocol.expression.client import ClientSource
from gcspy_protocol.expression.evaluation import Operand, Result
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_replay.file import Recording

from gcspy_client.lessons.lesson import Claim, Lesson

__all__ = ["CheckedClaim", "check_claims", "events_of_steps"]


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim and whether it is true.

    Attributes:
        step: Place of the step whose claim it is.
        claim: The claim.
        event: Number of the event at which it was checked: the first at which it does not hold, otherwise the last.
        holds: Whether it is true.
        values: What the condition compared, as text.
    """

    step: int
    claim: Claim
    event: int
    holds: bool
    values: str


def events_of_steps(lesson: Lesson, recording: Recording) -> list[int]:
    """Numbers of the events at which the steps stand, found as a player's trigger finds them.

    Raises:
        CommandError: The event of a step is not in the recording, or its condition is unclear.
    """
    reached: list[int] = []
    at = 1
    for step in lesson.steps:
        if step.until:
            found = next(
                (
                    here.number
                    for here, state in recording.steps(at + 1)
                    if _is_true(step.until, state)
                ),
                None,
            )
            if found is None:
                raise CommandError(
                    f"{lesson.path}:{step.line}: {step.title!r}: its event is not in the recording"
                )
            at = found
        reached.append(at)
    return reached


def _is_true(condition: str, state: ClientInterpreter) -> bool:
    try:
        result = _evaluated(condition, state)
    except UnknownName:
        return False  # its space may come later
    return result is not None and result.holds


def check_claims(
    lesson: Lesson, recording: Recording, reached: list[int] | None = None
) -> Iterator[CheckedClaim]:
    """Check each claim of a lesson.

    Args:
        lesson: The lesson.
        recording: A recording of it.
        reached: The event of each step; None: they are found.

    Raises:
        CommandError: A step is not reached or not there, or a condition has a name that there is not.
    """
    events = events_of_steps(lesson, recording) if reached is None else reached
    for place, step in enumerate(lesson.steps):
        for claim in step.claims:
            _refuse_absent_steps(lesson, claim)
            last = events[place if claim.at is None else claim.at]
            if claim.since is None:
                yield _checked(lesson, place, claim, last, recording.seek(last))
                continue
            checked = None
            for here, state in recording.steps(events[claim.since], last):
                one = _checked(lesson, place, claim, here.number, state)
                if one.values and (checked is None or checked.holds):
                    checked = one
            yield checked or CheckedClaim(place, claim, last, False, "no value is known")


def _refuse_absent_steps(lesson: Lesson, claim: Claim) -> None:
    """Refuse a claim about a step that the lesson does not have.

    Raises:
        CommandError: That is so; with the line.
    """
    last = max((each for each in (claim.at, claim.since) if each is not None), default=0)
    if last >= len(lesson.steps):
        raise CommandError(
            f"{lesson.path}:{claim.line}: the claim {claim.text!r} is about step {last + 1} of {len(lesson.steps)}"
        )


def _checked(
    lesson: Lesson, place: int, claim: Claim, event: int, state: ClientInterpreter
) -> CheckedClaim:
    try:
        result = _evaluated(claim.condition, state)
    except ExpressionError as error:
        raise CommandError(
            f"{lesson.path}:{claim.line}: the claim {claim.text!r}: {error}"
        ) from None
    if result is None or result.value is None:
        return CheckedClaim(place, claim, event, False, "")
    values = ", ".join(map(_shown, result.operands))
    return CheckedClaim(place, claim, event, result.holds, values or str(result.value))


def _shown(operand: Operand) -> str:
    value = operand.value
    number = (
        f"{value:,.3f}".rstrip("0").rstrip(".")
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
    return f"{operand.text} is {number}"


def _evaluated(condition: str, state: ClientInterpreter) -> Result | None:
    """The result of a condition right after an event; None: its streams were not gathered at it.

    Raises:
        ExpressionError: A name does not exist, or may mean several streams.
    """
    spaces = tuple(one.space for one in state.spaces.values())
    evaluator = Evaluator(bind(parse_condition(condition), spaces))
    source = ClientSource(state)
    return evaluator.evaluate(source) if evaluator.is_due(source) else None
