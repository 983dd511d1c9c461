"""Reading a lesson: a head in TOML between two lines of ``+++``, then Markdown; each heading of the second level begins a step.

In a step, a fenced block with the word ``step`` defines actions in TOML, one with the word
``question`` the question, one with the word ``exercise`` something to bring about, one with the word ``claims`` what can be checked of its texts; everything
else is its text.

    +++
    title = "What is a tile?"
    goal = "…"
    [simulation]
    collector = "marksweep"
    +++
    ## The heap
    Text.
    ```step
    until = "event == 'Full collection ends'"
    ```

Whatever is wrong is said with file and line. Knows the format; does not know which collectors, streams or settings there are: those are checked where
they are used.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gcspy_protocol.errors import CommandError, ExpressionError
from gcspy_protocol.expression import parse_condition

from gcspy_client.lessons.lesson import (
    Claim,
    Filter,
    Lesson,
    LessonExercise,
    LessonQuestion,
    LessonStep,
    View,
)

__all__ = ["MOST_BYTES", "parse_lesson", "read_lesson"]

MOST_BYTES: Final = 1 << 20
"""Largest file of a lesson, which is a few pages long."""

_HEAD_KEYS: Final = {"title": str, "goal": str, "simulation": dict}
_SIMULATION_KEYS: Final = {
    "collector": str, "program": str, "seed": int, "heap": str, "tile": str, "threads": int, "align": int,
    "clock": str, "pace": int, "level": int, "slow": int, "steps": int, "options": dict, "program_options": dict,
    "accesses": bool,
    "graph": bool, "costs": bool, "beside": str, "beside_options": dict,
}  # fmt: skip
_STEP_KEYS: Final = {"until": str, "set": dict, "view": dict, "filters": list}
_VIEW_KEYS: Final = {
    "space": str,
    "stream": str,
    "renderer": str,
    "history": list,
    "panels": list,
    "close": list,
    "tile": int,
}
_FILTER_KEYS: Final = {"event": str, "enabled": bool, "delay": int, "period": int}
_QUESTION_KEYS: Final = {
    "ask": str,
    "choices": list,
    "answer": int,
    "because": str,
    "feedback": list,
}
_CLAIM_KEYS: Final = {"holds": str, "always": str, "at": int, "since": int}
_EXERCISE_KEYS: Final = {"task": str, "check": str, "hint": str, "solution": dict}
_BLOCKS: Final = ("step", "question", "exercise", "claims")
_WORDS: Final = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
}
_TOML_PLACE: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class _Block:
    """A piece of TOML in a file, and in which line each of its keys stands."""

    def __init__(self, path: str, first: int, lines: list[str]) -> None:
        self._path, self._first, self._lines = path, first, lines
        try:
            self.values: dict[str, Any] = tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError as error:
            found = _TOML_PLACE.search(str(error))
            line = int(found[1]) if found is not None and found[1] else len(lines) or 1
            raise CommandError(
                f"{path}:{first + line - 1}: {_TOML_PLACE.sub('', str(error))}"
            ) from None

    def wrong(self, key: str, what: str) -> CommandError:
        """The error that a key's value is wrong."""
        return CommandError(f"{self._path}:{self.line_of(key)}: {what}")

    def line_of(self, key: str) -> int:
        """The line of the file in which a key stands."""
        pattern = re.compile(
            rf"^\s*\[?\s*[\"']?{re.escape(key)}[\"']?\s*[\]=.]|[{{,]\s*[\"']?{re.escape(key)}[\"']?\s*="
        )
        place = next((number for number, line in enumerate(self._lines) if pattern.search(line)), 0)
        return self._first + place

    def check(self, values: Mapping[str, Any], keys: Mapping[str, type], where: str) -> None:
        """Refuse keys that there are not, and values of another kind."""
        for key, value in values.items():
            if key not in keys:
                raise self.wrong(key, f"{where} has no {key!r}: it may have {', '.join(keys)}")
            if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is int):
                raise self.wrong(key, f"{key} is {value!r}: give {_WORDS[keys[key]]}")


def read_lesson(path: Path) -> Lesson:
    """Read the lesson in a file.

    Raises:
        CommandError: There is no such file, or it is not a lesson; with the line.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CommandError(f"{path} has more than {MOST_BYTES:,} bytes: it is not a lesson")
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{path} is not UTF-8 text, at byte {error.start:,}: save it as UTF-8"
        ) from None
    return parse_lesson(source, name=path.stem, path=str(path))


def parse_lesson(source: str, *, name: str, path: str) -> Lesson:
    """Parse the text of a lesson.

    Args:
        source: The text.
        name: Name of the lesson.
        path: The file name in errors.

    Raises:
        CommandError: It is not a lesson; with the line.
    """
    lines = source.splitlines()
    if not lines or lines[0].strip() != "+++":
        raise CommandError(
            f"{path}:1: a lesson begins with a line +++, a TOML header, and another line +++"
        )
    end = next((number for number in range(1, len(lines)) if lines[number].strip() == "+++"), 0)
    if not end:
        raise CommandError(f"{path}:1: the header is not closed: end it with a line +++")
    head = _Block(path, 2, lines[1:end])
    head.check(head.values, _HEAD_KEYS, "the header of a lesson")
    for key in _HEAD_KEYS:
        if key not in head.values:
            raise CommandError(f"{path}:2: the header has no {key}: add it")
    simulation = head.values["simulation"]
    head.check(simulation, _SIMULATION_KEYS, "[simulation]")
    steps = _steps(path, lines, end + 1)
    if not steps:
        raise CommandError(
            f"{path}:{end + 2}: there is no step: begin each step with a heading, ## and a title"
        )
    return Lesson(
        name=name,
        title=head.values["title"],
        goal=head.values["goal"],
        simulation=simulation,
        steps=tuple(steps),
        path=path,
    )


def _steps(path: str, lines: list[str], first: int) -> list[LessonStep]:
    """Cut the text behind the head at its headings."""
    starts: list[int] = []
    fenced = False
    for number in range(first, len(lines)):
        line = lines[number]
        if line.startswith("```"):
            fenced = not fenced
        elif line.startswith("## ") and not fenced:
            starts.append(number)
        elif line.strip() and not starts:
            raise CommandError(
                f"{path}:{number + 1}: this text is before the first step: begin each step with a heading, ## and a title"
            )
    ends = [*starts, len(lines)][1:]
    return [_step(path, lines, start, end) for start, end in zip(starts, ends, strict=True)]


def _step(path: str, lines: list[str], start: int, end: int) -> LessonStep:
    text: list[str] = []
    blocks: dict[str, _Block] = {}
    number = start + 1
    while number < end:
        line = lines[number]
        word = line.removeprefix("```").strip() if line.startswith("```") else ""
        if word not in _BLOCKS:
            text.append(line)
            number += 1
            continue
        close = next((at for at in range(number + 1, end) if lines[at].strip() == "```"), 0)
        if not close:
            raise CommandError(
                f"{path}:{number + 1}: the block {word!r} is not closed: end it with a line of three backquotes"
            )
        if word in blocks:
            raise CommandError(
                f"{path}:{number + 1}: a step has one block {word!r}: begin another step"
            )
        blocks[word] = _Block(path, number + 2, lines[number + 1 : close])
        number = close + 1
    return LessonStep(
        title=lines[start].removeprefix("## ").strip(),
        text="\n".join(text).strip(),
        question=_question(blocks["question"]) if "question" in blocks else None,
        exercise=_exercise(blocks["exercise"]) if "exercise" in blocks else None,
        claims=_claims(blocks["claims"]) if "claims" in blocks else (),
        line=start + 1,
        **(_doing(blocks["step"]) if "step" in blocks else {}),
    )


def _doing(block: _Block) -> dict[str, Any]:
    """The actions of a step, as fields of `LessonStep`."""
    values = block.values
    block.check(values, _STEP_KEYS, "a step")
    until = values.get("until", "")
    if until:
        try:
            parse_condition(until)
        except ExpressionError as error:
            raise block.wrong("until", f"until: {error}") from None
    found: dict[str, Any] = {
        "until": until,
        "settings": _settings(block, values.get("set", {})),
    }
    if "view" in values:
        found["view"] = _view(block, values["view"])
    if "filters" in values:
        found["filters"] = tuple(_filter(block, one) for one in values["filters"])
    return found


def _settings(block: _Block, values: Mapping[str, Any]) -> Mapping[str, int | str]:
    """Settings by name."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise block.wrong(
                name, f"setting {name!r} is {value!r}: give a whole number, or the name of a choice"
            )
    return values


def _view(block: _Block, values: Mapping[str, Any]) -> View:
    block.check(values, _VIEW_KEYS, "view")
    for key in ("panels", "close"):
        if not all(isinstance(one, str) for one in values.get(key, ())):
            raise block.wrong(key, f"{key} is {values[key]!r}: give names of panels")
    history = values.get("history", [])
    if not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
        for pair in history
    ):
        raise block.wrong("history", f"history is {history!r}: give pairs of a space and a stream")
    if values.get("tile", 0) < 0:
        raise block.wrong("tile", f"tile is {values['tile']}: give the number of a tile, from 0")
    return View(
        space=values.get("space", ""),
        stream=values.get("stream", ""),
        renderer=values.get("renderer", ""),
        history=tuple((space, stream) for space, stream in history),
        panels=tuple(values.get("panels", ())),
        close=tuple(values.get("close", ())),
        tile=values.get("tile"),
    )


def _filter(block: _Block, values: object) -> Filter:
    if not isinstance(values, dict) or "event" not in values:
        raise block.wrong(
            "filters", f"a filter is {values!r}: give a table with the name of an event"
        )
    block.check(values, _FILTER_KEYS, "a filter")
    delay, period = values.get("delay", 0), values.get("period", 1)
    if delay < 0 or period < 1:
        raise block.wrong(
            "filters",
            f"a filter has a delay of {delay} ms and a period of {period}: give at least 0 and 1",
        )
    return Filter(
        event=values["event"],
        enabled=values.get("enabled", True),
        delay_millis=delay,
        period=period,
    )


def _question(block: _Block) -> LessonQuestion:
    values = block.values
    block.check(values, _QUESTION_KEYS, "a question")
    for key in ("ask", "choices", "answer"):
        if key not in values:
            raise block.wrong(key, f"a question has no {key}: add it")
    choices, answer = values["choices"], values["answer"]
    feedback = values.get("feedback", [])
    if len(choices) < 2 or not all(isinstance(one, str) for one in choices):
        raise block.wrong("choices", f"choices is {choices!r}: give at least two texts")
    if not 1 <= answer <= len(choices):
        raise block.wrong(
            "answer",
            f"answer is {answer}: give the number of the right choice, 1 to {len(choices)}",
        )
    if feedback and (
        len(feedback) != len(choices) or not all(isinstance(one, str) for one in feedback)
    ):
        raise block.wrong(
            "feedback",
            f'feedback has {len(feedback)} entries: give a text for each of the {len(choices)} choices, "" for the right one',
        )
    return LessonQuestion(
        ask=values["ask"],
        choices=tuple(choices),
        answer=answer - 1,
        because=values.get("because", ""),
        feedback=tuple(feedback),
    )


def _exercise(block: _Block) -> LessonExercise:
    values = block.values
    block.check(values, _EXERCISE_KEYS, "an exercise")
    for key in ("task", "check", "solution"):
        if not values.get(key):
            raise block.wrong(key, f"an exercise has no {key}: add it")
    try:
        parse_condition(values["check"])
    except ExpressionError as error:
        raise block.wrong("check", f"check: {error}") from None
    return LessonExercise(
        task=values["task"],
        check=values["check"],
        hint=values.get("hint", ""),
        solution=_settings(block, values["solution"]),
    )


def _claims(block: _Block) -> tuple[Claim, ...]:
    return tuple(_claim(block, text, value) for text, value in block.values.items())


def _claim(block: _Block, text: str, value: object) -> Claim:
    """A claim: a quotation, and a condition, or a table with the condition and when it holds."""
    if isinstance(value, str):
        value = {"holds": value}
    if not isinstance(value, dict) or ("holds" in value) == ("always" in value):
        raise block.wrong(
            text,
            f"the claim {text!r} is {value!r}: give a condition, or a table with either holds or always",
        )
    block.check(value, _CLAIM_KEYS, "a claim")
    condition = value.get("holds", "") or value.get("always", "")
    try:
        parse_condition(condition)
    except ExpressionError as error:
        raise block.wrong(text, f"the claim {text!r}: {error}") from None
    if ("since" in value) != ("always" in value):
        raise block.wrong(
            text, f"the claim {text!r}: always needs since, the number of a step, and since always"
        )
    if min(value.get("at", 1), value.get("since", 1)) < 1:
        raise block.wrong(text, f"the claim {text!r}: steps have numbers from 1")
    return Claim(
        text=text,
        condition=condition,
        at=value["at"] - 1 if "at" in value else None,
        since=value["since"] - 1 if "since" in value else None,
        line=block.line_of(text),
    )
