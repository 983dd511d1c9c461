"""Expressions: any text is parsed or refused, what is printed parses to the same, and every value is the oracle's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gcspy_protocol.errors import AmbiguousName, ExpressionError, UnknownName
from gcspy_protocol.expression import (
    FUNCTIONS,
    MOST_CHARS,
    MOST_DEPTH,
    MOST_NODES,
    Evaluator,
    EventFacts,
    Expression,
    TileValues,
    ValueKind,
    bind,
    parse,
    parse_condition,
)
from gcspy_protocol.expression.nodes import (
    Binary,
    Call,
    Chain,
    Literal,
    Name,
    Node,
    Not,
    Sign,
    printed,
)
from gcspy_protocol.expression.parser import parse_tree
from gcspy_protocol.model import Space, Stream
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.protocol.expressions import HEAP, SPACES, STREAMS, Gathered, Oracle, gathered, trees

_PIECES = st.sampled_from(
    [
        *"()+-*/%<>.,'\" \n\0é😀",
        *(
            "//",
            "<=",
            "==",
            "!=",
            "and ",
            " or ",
            "not ",
            "true",
            "Used",
            "sum(",
            "was(",
            "event",
            '"a b"',
            "'x'",
        ),
        *("1", "0.5", "40%", "4KiB", "1e3", "9" * 40, "min(", "known(", "summary("),
    ]
)
TEXTS = st.text(max_size=60) | st.lists(_PIECES, max_size=40).map("".join)


# ------------------------------------------------------------------------- parsing


def parsed(text: str) -> tuple[Expression | None, ExpressionError | None]:
    try:
        return parse(text), None
    except ExpressionError as error:
        return None, error


@given(TEXTS)
def test_any_text_is_an_expression_or_an_error_of_ours_with_its_place(text: str) -> None:
    found, error = parsed(text)
    if found is not None:
        assert parse(str(found)).root == found.root
        return
    assert error is not None
    assert 0 <= error.offset <= len(text)
    assert error.text == text
    pointed, mark = error.pointed().split("\n")
    assert mark == " " * min(error.offset, 60) + "^"
    assert len(pointed) <= 80


@given(trees(depth=3))
def test_what_is_printed_parses_to_the_same_tree(tree: Node) -> None:
    text = printed(tree)
    assume(len(text) <= MOST_CHARS)
    found = parse_tree(text)
    assert found == tree
    assert printed(found) == text


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", "1 + 2 * 3"),
        ("(1 + 2) * 3", "(1 + 2) * 3"),
        ("1 - (2 - 3)", "1 - (2 - 3)"),
        ("(1 - 2) - 3", "1 - 2 - 3"),
        ("-a % 3", "-a % 3"),
        ("-(a % 3)", "-(a % 3)"),
        ("not a < 1 and true or false", "not a < 1 and true or false"),
        ("not (a < 1 and true)", "not (a < 1 and true)"),
        ("+ + 1", "1"),
        ("heap.a", "heap.a"),
        ('"heap"."a"', "heap.a"),
        ('"not" + "event" + "a ""b"""', '"not" + "event" + "a ""b"""'),
        ("event == 'it''s'", "event == 'it''s'"),
        ("event.a > 1", '"event".a > 1'),
        ("sum", "sum"),
        ("7%3", "7 % 3"),
        ("7 %3", "7 % 3"),
        ("40%", "0.4"),
        ("a > 40% and true", "a > 0.4 and true"),
        ("4KiB + 1.5k + 2MB + 3B", "4096 + 1500.0 + 2000000 + 3"),
        ("1e3", "1000.0"),
        ("18446744073709551615", "18446744073709551615"),
    ],
)
def test_operators_bind_and_numbers_read_as_everywhere(text: str, tree: str) -> None:
    assert printed(parse_tree(text)) == tree
    assert parse_tree(tree) == parse_tree(text)


@pytest.mark.parametrize(
    ("text", "offset", "why"),
    [
        ("", 0, "missing"),
        ("   ", 3, "missing"),
        ("1 +", 3, "it ends"),
        ("1 + * 2", 4, "there is *"),
        ("a b", 2, "unexpected here"),
        ("(1", 0, "never closed"),
        ("sum(a", 3, "never closed"),
        ("sum(a b)", 6, "a ) is expected here"),
        ('1 + "a', 4, "never closed"),
        ("a = 1", 2, "=="),
        ("2x", 1, "followed by 'x'"),
        ("a.", 2, "name of a stream"),
        ("a.1", 2, "name of a stream"),
        ('"".a', 0, "empty name"),
        ("18446744073709551616", 0, "beyond the largest"),
        ("1e400", 0, "beyond what a float"),
        ("1 < and", 4, "there is and"),
        ("foo(1)", 0, "no function foo; there are sum"),
        ("sum(1)", 4, "needs tiles"),
        ("sum(a, a)", 0, "use it as sum(x)"),
        ("count(a)", 6, "takes a condition"),
        ("was(a)", 4, "one value"),
        ("1 + true", 4, "takes a number"),
        ("not 1", 4, "takes a condition"),
        ("a > 'x'", 4, "text is compared with a text"),
        ("event < 'x'", 0, "== and !="),
        ("(1 < 2) == true", 3, "not compared"),
        ("summary(a + 1)", 0, "use it as summary"),
        ("summary(a, 1)", 0, "use it as summary"),
        ("min()", 0, "use it as min"),
        ("a.__class__.__bases__", 11, "unexpected here"),
        ("lambda: 1", 6, "no meaning"),
        ("[1]", 0, "no meaning"),
        ("a if 1 else b", 2, "unexpected here"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, offset: int, why: str) -> None:
    with pytest.raises(ExpressionError, match="at character") as caught:
        parse(text)
    assert caught.value.offset == offset
    assert why in str(caught.value)


def test_a_mark_shows_where() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("sum(Used) > 1.2 * was(Used)")
    assert caught.value.pointed() == "sum(Used) > 1.2 * was(Used)\n                      ^"


@pytest.mark.parametrize(
    "text",
    [
        "(" * MOST_DEPTH + "1" + ")" * MOST_DEPTH,
        "1" + " + 1" * (2 * MOST_DEPTH),
        "-" * (2 * MOST_DEPTH) + "1",
        "not " * (2 * MOST_DEPTH) + "true",
        "1 < " * MOST_NODES + "1",
        "1" * (MOST_CHARS + 1),
        "abs(" * 40 + "1" + ")" * 40,
    ],
)
def test_more_than_the_limits_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"at most|more than|largest"):
        parse(text)


def test_as_much_as_the_limits_is_taken() -> None:
    deep = MOST_DEPTH - 1
    assert parse("(" * deep + "1" + ")" * deep).root == Literal(1)
    parse("1" + " + 1" * (2 * MOST_DEPTH - 1))
    parse("1 < " * (MOST_NODES - 2) + "1")


def test_a_trigger_needs_one_condition() -> None:
    assert parse_condition("sum(a) > 5").shape.kind is ValueKind.TRUTH
    for text, why in (
        ("sum(a)", "this is a number"),
        ("a > 5", "for each tile: count"),
        ("event", "a text"),
    ):
        with pytest.raises(ExpressionError, match=why):
            parse_condition(text)


# -------------------------------------------------------------------------- binding


def test_names_are_found_in_the_space_in_question_then_as_the_only_ones() -> None:
    assert bind(parse("sum(a)"), SPACES, 2).wants == {(2, 0)}
    assert bind(parse("sum(b)"), SPACES).wants == {(1, 1)}
    assert bind(parse('sum("two WORDS") + sum("OTHER heap".a)'), SPACES).wants == {(1, 4), (2, 0)}
    assert bind(parse("a + b"), SPACES, 1).tiles_of == 1
    assert bind(parse("sum(a) + 1"), SPACES, 1).tiles_of is None
    exact = Space(id=3, name="x", streams=(Stream(id=0, name="Used"), Stream(id=1, name="used")))
    assert bind(parse("used"), [exact]).wants == {(3, 1)}


@pytest.mark.parametrize(
    ("text", "scope", "offset", "why"),
    [
        ("sum(nothing)", 1, 4, "space 'heap' has no stream 'nothing'; it has 'a', 'b'"),
        ("sum(nothing)", None, 4, "no space has a stream 'nothing'"),
        ("sum(b)", 2, 4, "space 'other heap' has no stream 'b'"),
        ("sum(nowhere.a)", None, 4, "no space 'nowhere'; there are 'heap', 'other heap'"),
        ('a + "other heap".only', 1, 2, "tiles of 'heap' with tiles of 'other heap'"),
        ("total(a)", 1, 0, "not a percentage"),
        ('summary("Two words")', 1, 0, "takes one of its names: 'x', 'y'"),
        ("summary(\"Two words\", 'z')", 1, 21, "has no name 'z'"),
        ("summary(a, 'x')", 1, 0, "no name"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(
    text: str, scope: int | None, offset: int, why: str
) -> None:
    with pytest.raises(UnknownName) as caught:
        bind(parse(text), SPACES, scope)
    assert caught.value.offset == offset
    assert why in str(caught.value)


def test_a_name_that_several_streams_have_is_said_with_the_words_to_use() -> None:
    with pytest.raises(AmbiguousName) as caught:
        bind(parse("1 < sum(a)"), SPACES)
    assert caught.value.offset == len("1 < sum(")
    assert caught.value.choices == ("heap.a", '"other heap".a')
    assert "several streams are called 'a', in 'heap', 'other heap'" in str(caught.value)
    assert 'write heap.a or "other heap".a' in str(caught.value)
    for choice in caught.value.choices:
        assert len(bind(parse(f"1 < sum({choice})"), SPACES).wants) == 1


def test_streams_that_no_words_tell_apart_have_no_words() -> None:
    twins = [
        Space(id=number, name="heap", streams=(Stream(id=0, name="Used"),)) for number in (1, 2)
    ]
    with pytest.raises(AmbiguousName) as caught:
        bind(parse("sum(Used)"), twins)
    assert caught.value.choices == ()
    assert "no name distinguishes them" in str(caught.value)


def test_a_name_with_spaces_and_without_quotes_is_answered_with_the_quotes() -> None:
    with pytest.raises(ExpressionError, match="in double quotes") as caught:
        parse("sum(other heap.a) > 1")
    assert caught.value.offset == len("sum(other ")
    with pytest.raises(ExpressionError) as caught:
        parse("sum(a and b")
    assert "quotes" not in str(caught.value)


# ----------------------------------------------------------------------- evaluation


def assert_close(found: Any, wanted: Any) -> None:
    """The same; floats but for the order in which they were added."""
    assert type(found) is type(wanted), (found, wanted)
    if isinstance(wanted, float):
        assert math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-300)
    else:
        assert found == wanted


def listed(tiles: TileValues) -> list[Any]:
    return [
        value if tiles.known is None or tiles.known[place] else None
        for place, value in enumerate(tiles.values.tolist())
    ]


def sums_floats(node: Node) -> bool:
    """Whether a comparison may hang on the order in which floats are added."""
    match node:
        case Call():
            inner = any(map(sums_floats, node.arguments))
            return inner or (
                node.function in ("sum", "mean") and any(map(has_floats, node.arguments))
            )
        case Sign() | Not():
            return sums_floats(node.operand)
        case Binary():
            return sums_floats(node.left) or sums_floats(node.right)
        case Chain():
            return any(map(sums_floats, node.operands))
        case _:
            return False


def has_floats(node: Node) -> bool:
    match node:
        case Literal():
            return isinstance(node.value, float)
        case Binary():
            return node.operator == "/" or has_floats(node.left) or has_floats(node.right)
        case Call():
            return node.function in ("mean", "share") or any(map(has_floats, node.arguments))
        case Sign() | Not():
            return has_floats(node.operand)
        case Chain():
            return False
        case Name():
            return False
        case _:
            return True


@examples(1.5)
@given(tree=trees(), events=st.lists(gathered(), min_size=1, max_size=3))
def test_every_value_is_that_of_the_oracle(tree: Node, events: list[Gathered]) -> None:
    text = printed(tree)
    assume(len(text) <= MOST_CHARS and not sums_floats(tree))
    evaluator = Evaluator(bind(parse(text), SPACES, HEAP.id))
    oracle = Oracle()
    for event in events:
        before = {key: values.copy() for key, (values, _) in event.values.items()}
        found, wanted = evaluator.evaluate(event), oracle.evaluate(tree, event)
        if isinstance(wanted, list):
            assert isinstance(found.value, TileValues)
            for mine, theirs in zip(listed(found.value), wanted, strict=True):
                assert_close(mine, theirs)
        else:
            assert_close(found.value, wanted)
        assert found.holds is (wanted is True)
        for key, (values, _) in event.values.items():
            np.testing.assert_array_equal(values, before[key], "an operand was changed in place")


def heap(used: list[int] | None = None, **values: list[int | None]) -> Gathered:
    """A heap of which some streams are given; None is unknown."""
    count = len(next(iter(values.values())))
    found = Gathered(EventFacts(event="GC start", occurrence=7), {}, {1: None, 2: None})
    for stream in STREAMS:
        given = values.get(stream.name, [0] * count)
        array = np.array([0 if one is None else one for one in given], dtype=stream.dtype)
        known = np.array([one is not None for one in given])
        found.values[1, stream.id] = array, None if known.all() else known
    found.tiles[1] = None if used is None else np.array(used, dtype=np.bool_)
    return found


def worth(text: str, event: Gathered) -> Any:
    value = Evaluator(bind(parse(text), SPACES, 1)).evaluate(event).value
    return listed(value) if isinstance(value, TileValues) else value


TOP, BOTTOM = (1 << 63) - 1, -(1 << 63)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("b + 1", [BOTTOM + 1, None, 1]),
        ("b - 1", [None, TOP - 1, -1]),
        ("-b", [None, -TOP, 0]),
        ("abs(b)", [None, TOP, 0]),
        ("b * 2", [None, None, 0]),
        ("b * -1", [None, -TOP, 0]),
        ("-1 * b", [None, -TOP, 0]),
        ("b // -1", [None, -TOP, 0]),
        ("b % -1", [0, 0, 0]),
        ("b * 1.0", [float(BOTTOM), float(TOP), 0.0]),
        ("b / b", [1.0, 1.0, None]),
        ("1 // b", [-1, 0, None]),
        ("b + 18446744073709551615", [None, None, None]),
        ("b < 18446744073709551615", [True, True, True]),
        ("c == 18446744073709551615", [True, False, False]),
        ("c > b", [True, True, False]),
        ("c + 0", [None, None, 0]),
        ("c >= 9223372036854775808", [True, True, False]),
        ("b <= c", [True, True, True]),
        ("max(c, 1)", [None, None, 1]),
        ("known(c + 0)", [False, False, True]),
        ("not (c + 0 < 5)", [None, None, False]),
        ("c + 0 < 5 or a == 0", [True, True, True]),
        ("c + 0 < 5 and a == 1", [False, False, False]),
    ],
)
def test_no_integer_wraps_round_at_the_extremes(text: str, values: list[Any]) -> None:
    event = heap(b=[BOTTOM, TOP, 0], c=[(1 << 64) - 1, 1 << 63, 0])
    assert worth(text, event) == values


def test_sums_are_exact_beyond_sixty_four_bits() -> None:
    event = heap(c=[(1 << 64) - 1] * 5, b=[BOTTOM] * 5)
    assert worth("sum(c)", event) == 5 * ((1 << 64) - 1)
    assert worth("sum(b)", event) == 5 * BOTTOM
    assert worth("sum(c) * sum(c)", event) is None, "one value has 128 bits"


def test_aggregates_go_over_used_and_known_tiles_and_say_over_how_many() -> None:
    event = heap(used=[1, 1, 0, 1], a=[10, None, 99, 20])
    result = Evaluator(
        bind(parse("sum(a) + min(a) + count(a > 15) + covered(a)"), SPACES, 1)
    ).evaluate(event)
    assert result.value == 30 + 10 + 1 + 2
    assert [(one.text, one.value, one.covered, one.tiles) for one in result.operands] == [
        ("sum(a)", 30, 2, 3),
        ("min(a)", 10, 2, 3),
        ("count(a > 15)", 1, 2, 3),
        ("covered(a)", 2, 2, 3),
    ]


@pytest.mark.parametrize("used", [[0, 1, 1, 0], None])
def test_what_does_not_count_is_neither_least_nor_greatest_nor_summed(
    used: list[int] | None,
) -> None:
    event = heap(used=used, a=[1, 5, 9, 200] if used else [None, 5, 9, None])
    found = [worth(f"{name}(a * 0.5)", event) for name in ("min", "max", "sum", "mean")]
    assert found == [2.5, 4.5, 7.0, 3.5]
    assert [worth(f"{name}(a)", event) for name in ("min", "max", "sum")] == [5, 9, 14]
    assert worth("sum(a / (a - 5))", event) == 9 / 4, "where it is divided by zero it is unknown"


def test_an_aggregate_that_covers_no_tile_is_unknown_and_a_condition_on_it_does_not_hold() -> None:
    for event in (heap(a=[None, None]), heap(used=[0, 0], a=[1, 2]), heap(a=[])):
        for name in ("sum", "mean", "min", "max"):
            assert worth(f"{name}(a)", event) is None
        assert worth("count(a > 0)", event) is None
        assert worth("covered(a)", event) == 0
        for text in ("sum(a) >= 0", "not sum(a) >= 0"):
            assert not Evaluator(bind(parse(text), SPACES, 1)).evaluate(event).holds


def test_the_event_before_is_the_last_that_was_evaluated_and_can_be_forgotten() -> None:
    evaluator = Evaluator(bind(parse("was(sum(a)) + was(was(sum(a)))"), SPACES, 1))
    totals = [evaluator.evaluate(heap(a=[value])).value for value in (1, 2, 4, 8)]
    assert totals == [None, None, 3, 6]
    evaluator.reset()
    assert evaluator.evaluate(heap(a=[16])).value is None


def test_what_breaks_an_evaluation_forgets_the_event_before() -> None:
    evaluator = Evaluator(bind(parse("sum(a) > was(sum(a))"), SPACES, 1))
    evaluator.evaluate(heap(a=[1]))

    def stop() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        evaluator.evaluate(heap(a=[5]), stop)
    assert evaluator.evaluate(heap(a=[9])).value is None


def test_it_is_due_when_all_that_it_names_was_gathered() -> None:
    evaluator = Evaluator(bind(parse("sum(a) > sum(b)"), SPACES, 1))
    event = heap(a=[1])
    assert evaluator.is_due(event)
    event.stale.add((1, 1))
    assert not evaluator.is_due(event)


def test_every_function_is_in_the_specification() -> None:
    from tests.house.rooms import ROOT

    section = (ROOT / "protocol/SPEC.md").read_text().split("### 8.7")[1].split("### 8.8")[0]
    assert [name for name in FUNCTIONS if name not in section] == []
    for limit in (MOST_CHARS, MOST_NODES, MOST_DEPTH, 2 * MOST_DEPTH):
        assert f"{limit:,}" in section


def test_the_guides_conditions_are_conditions() -> None:
    from tests.house.rooms import ROOT

    guide = (ROOT / "docs/expressions.md").read_text()
    examples = guide.split("Examples of conditions:")[1].split("Sums and counts")[0].split("\n")
    conditions = [line.strip() for line in examples if line.strip()]
    conditions += [
        line.split("--")[1].split(" ", 1)[1].strip()[1:-1]
        for line in guide.splitlines()
        if line.startswith("    gcspy")
    ]
    assert len(conditions) == 8
    for condition in conditions:
        parse_condition(condition)


@pytest.mark.parametrize("text", ["sum(Used)", "Used > 3"])
def test_what_is_no_condition_is_pointed_at_from_its_beginning(text: str) -> None:
    with pytest.raises(ExpressionError, match="a condition is needed") as caught:
        parse_condition(text)
    assert caught.value.offset == 0
