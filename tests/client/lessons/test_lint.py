"""The lint of lessons, and the claims of their texts: each planted fault is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gcspy_protocol.errors import CommandError
from gcspy_replay.file import Recording
from gcspy_replay.samples import lesson_recording

from gcspy_client.lessons import Lesson, find_lesson
from gcspy_client.lessons.claims import check_claims
from gcspy_client.lessons.lint import lint_lesson, lint_lessons
from gcspy_client.lessons.text import parse_lesson

HEAD = '+++\ntitle = "T"\ngoal = "G"\n[simulation]\ncollector = "marksweep"\n+++\n'
GOOD = """\
## One
The heap is empty.
```question
ask = "What comes next?"
choices = ["Objects", "A collection", "Nothing at all"]
answer = 1
because = "A program makes objects."
feedback = ["", "There is room.", "It has begun."]
```
```claims
"heap is empty" = 'sum(Heap."Used space") == 0'
```
"""


def lesson_of(text: str, name: str = "n") -> Lesson:
    return parse_lesson(HEAD + text, name=name, path="p.md")


def test_a_good_lesson_has_no_problem() -> None:
    assert lint_lesson(lesson_of(GOOD)) == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"Objects"', '"Objects, many of them, and each in its own place"', "length gives it away"),
        ('"Objects"', '"What comes is objects"', "repeats a word of the question: 'comes'"),
        ('"Objects"', '"The heap is empty"', "stands in the text above"),
        ('"Nothing at all"', '"a  collection"', "are the same"),
        (', "Nothing at all"]', "]", "half of a guess"),
        ('because = "A program makes objects."\n', "", "no explanation"),
        ('"It has begun."', '""', "the wrong choice 'Nothing at all' is not explained"),
        ('"heap is empty" =', '"heap is full" =', "is not in its texts"),
        ("```claims\n\"heap is empty\" = 'sum(Heap.\"Used space\") == 0'\n```\n", "", "is checked"),
        ("The heap is empty.", "The heap is empty. " * 60, "can be seen"),
        ("= 'sum(Heap.\"Used space\") == 0'", "= { at = 4, holds = '1 > 0' }", "about step 4 of 1"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_found(before: str, after: str, words: str) -> None:
    assert before in GOOD
    text = GOOD.replace(before, after, 1)
    if "heap is full" not in after and after == "]":
        text = text.replace(', "It has begun."', "")
    found = lint_lesson(lesson_of(text))
    assert len(found) == 1, found
    assert found[0].startswith("p.md:7: step 1, 'One': ")
    assert words in found[0]


def test_a_right_choice_that_always_stands_at_one_place_or_is_the_longest_is_found() -> None:
    lesson = lesson_of(GOOD)
    place = lesson.order(0).index(0)
    same = [lesson] * 6
    assert lint_lessons(same) == [
        f"the right choice is number {place + 1} in 6 of 6 questions: use another seed"
    ]
    longest = lesson_of(GOOD.replace('"Objects"', '"Some more objects"'))
    assert any("the longest in 6 of 6" in problem for problem in lint_lessons([longest] * 6))


def test_the_order_of_choices_depends_on_the_seed_and_on_nothing_else() -> None:
    question = lesson_of(GOOD).steps[0].question
    assert question is not None
    assert question.order("a") == question.order("a")
    orders = {question.order(str(seed)) for seed in range(50)}
    assert len(orders) == 6


@pytest.fixture
def recording() -> Iterator[Recording]:
    path = lesson_recording("tiles")
    assert path is not None
    with Recording.open(path) as opened:
        yield opened


def with_claims(claims: str) -> Lesson:
    steps = find_lesson("tiles").steps
    until = steps[1].until
    return lesson_of(f'## One\n```claims\n{claims}\n```\n## Two\n```step\nuntil = "{until}"\n```\n')


@pytest.mark.parametrize(
    ("claim", "holds", "values"),
    [
        ("'sum(Heap.\"Used space\") == 0'", True, "is 0"),
        ("'sum(Heap.\"Used space\") > 0'", False, "is 0"),
        ("{ at = 2, holds = 'sum(Heap.\"Used space\") == 16896' }", True, "is 16,896"),
        ("{ at = 2, holds = 'sum(Heap.\"Used space\") == 16895' }", False, "is 16,896"),
        ("{ since = 1, at = 2, always = 'sum(Heap.Marked) == 0' }", True, "is 0"),
        ("{ since = 1, at = 2, always = 'sum(Heap.\"Used space\") == 0' }", False, "is 16,896"),
    ],
)
def test_a_claim_is_checked_at_its_events(
    claim: str, holds: bool, values: str, recording: Recording
) -> None:
    (checked,) = check_claims(with_claims(f'"One" = {claim}'), recording)
    assert checked.holds is holds
    assert values in checked.values


def test_a_claim_about_what_there_is_not_is_refused_with_its_line(recording: Recording) -> None:
    with pytest.raises(CommandError, match=r"p\.md:9: the claim 'One': .*Hoap"):
        list(check_claims(with_claims("\"One\" = 'sum(Hoap.Marked) == 0'"), recording))


def test_a_claim_about_a_step_that_there_is_not_is_refused(recording: Recording) -> None:
    with pytest.raises(CommandError, match=r"is about step 9 of \d"):
        list(
            check_claims(
                with_claims("\"One\" = { at = 9, holds = 'sum(Heap.Marked) == 0' }"), recording
            )
        )
