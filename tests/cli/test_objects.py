"""`gcspy objects`: the questions about the objects of a trace, on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import duckdb
import pytest
from PIL import Image, ImageColor

from gcspy.cli import main
from gcspy.objects.life_analysis import lives_of
from gcspy_client.model.palette import Theme
from gcspy_client.view.theme import tokens
from tests.objects.samples import path_of

SAMPLE = path_of("promote")

ALLOCATED = {"Promote$Tmp": 206_910, "Promote$Tree": 68_970, "Promote$Pay": 34_485}
"""As the program says of itself."""


@pytest.fixture
def asked(capfd: pytest.CaptureFixture[str]) -> Any:
    def ask(*words: str, code: int = 0) -> str:
        assert main(["objects", words[0], str(SAMPLE), *words[1:]]) == code
        out, err = capfd.readouterr()
        return err if code else out

    return ask


def test_the_types_with_most_objects_are_told_as_table_2_of_ya_jop(asked: Any) -> None:
    lines = asked("types", "--top", "3").splitlines()
    assert lines[1].split()[:3] == ["Type", "Allocated", "%"]
    total = sum(
        int(str(row["allocated_objects"]))
        for row in json.loads(asked("types", "--json", "--top", "0"))["rows"]
    )
    assert [line.split()[:3] for line in lines[2:5]] == [
        [name, f"{count:,}", f"{100 * count / total:.2f}"] for name, count in ALLOCATED.items()
    ]
    assert lines[5].startswith("(230 others)")


def test_what_became_of_one_type_in_each_collection_is_told_as_figure_4_of_ya_jop(
    asked: Any,
) -> None:
    rows = json.loads(asked("collections", "--type", "Promote$Tmp", "--json"))["rows"]
    assert [row["number"] for row in rows] == list(range(1, 9))
    assert sum(row["allocated_objects"] for row in rows) == ALLOCATED["Promote$Tmp"]
    # Nearly all that was allocated since the collection before dies in each: such objects could be used again.
    assert all(row["died_objects"] >= row["allocated_objects"] - 3 for row in rows)


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the trace be read once for several questions."""
    with lives_of(SAMPLE) as store:
        monkeypatch.setattr("gcspy.objects.questions.lives_of", lambda _path: nullcontext(store))
        yield


@pytest.mark.usefixtures("read_once")
def test_each_question_answers_as_table_as_json_and_as_parquet(asked: Any, tmp_path: Path) -> None:
    questions = (
        ["types"], ["types", "--gc", "4"], ["types", "--each-gc", "--top", "2"], ["sites", "--bytes"], ["collections"],
        ["lifetimes"], ["lifetimes", "--in", "gcs"], ["lifetimes", "--each", "type"], ["survival"], ["survival", "--in", "gcs"],
    )  # fmt: skip
    for number, words in enumerate(questions):
        path = tmp_path / f"{number}.parquet"
        data = json.loads(asked(*words, "--json", "--parquet", str(path)))
        rows = [tuple(row[column["name"]] for column in data["columns"]) for row in data["rows"]]
        assert rows, words
        with duckdb.connect() as engine:
            stored = engine.execute(f"SELECT * FROM '{path}'").fetchall()
        assert stored[: len(rows)] == rows, words
        assert len(stored) == len(rows) + data.get("rest", {"rows": 0})["rows"]
    assert "Promote.build(int) @ 20" in asked("sites", "--type", "Tmp")
    assert "Half gone after" in asked("lifetimes", "--each", "type")


@pytest.mark.usefixtures("read_once")
def test_a_plot_has_the_curve_in_the_colours_of_either_theme(asked: Any, tmp_path: Path) -> None:
    for theme, words in (
        ("dark", ["survival"]),
        ("light", ["lifetimes", "--in", "gcs", "--bytes"]),
        ("dark", ["collections", "--type", "Tmp"]),
        ("light", ["types"]),
        ("dark", ["sites"]),
    ):
        path = tmp_path / f"{words[0]}.png"
        asked(*words, "--plot", str(path), "--theme", theme)
        with Image.open(path) as image:
            colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 20) or ()}
        assert {
            ImageColor.getrgb(tokens(Theme(theme)).surface),
            ImageColor.getrgb(tokens(Theme(theme)).accent),
        } <= colours


def test_without_a_window_library_a_plot_is_refused_before_the_trace_is_read(
    asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcspy.gui.find_spec", lambda _name: None)
    assert "pip install '.[gui]'" in asked("survival", "--plot", str(tmp_path / "a.png"), code=8)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_replaced_only_by_force(asked: Any, tmp_path: Path) -> None:
    path = tmp_path / "there.parquet"
    path.write_text("mine")
    assert "exists already" in asked("types", "--parquet", str(path), code=2)
    assert path.read_text() == "mine"
    asked("types", "--parquet", str(path), "--force")
    assert path.read_bytes().startswith(b"PAR1")


def test_what_cannot_be_told_is_one_line_with_a_remedy(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked("types", "--type", "Nobody", code=1) == (
        "gcspy: the trace has no type called 'Nobody': gcspy objects types lists them; * stands for anything\n"
    )
    assert "no collection 9: it has 1 to 8" in asked("types", "--gc", "9", code=1)
    assert "choose one" in asked("types", "--gc", "1", "--each-gc", code=2)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert (
        asked("types", code=8)
        == "gcspy: questions about objects need the package duckdb; in a clone of gcspy: pip install '.[objects]'\n"
    )


def test_what_is_no_trace_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"nonsense" * 100)
    assert main(["objects", "types", str(path)]) == 9
    assert capfd.readouterr().err.count("\n") == 1


def test_what_lives_at_a_moment_and_since_another_adds_up(asked: Any) -> None:
    last = json.loads(asked("live", "--json", "--top", "0"))["rows"]
    whole = {(row["site_name"], row["type_name"]): row["live_bytes"] for row in last}
    since = json.loads(asked("live", "--since", "gc:4:end", "--json", "--top", "0"))["rows"]
    before = json.loads(asked("live", "--at", "gc:4:end", "--json", "--top", "0"))["rows"]
    then = {(row["site_name"], row["type_name"]): row["live_bytes"] for row in before}
    for row in since:
        key = row["site_name"], row["type_name"]
        assert row["live_bytes"] == whole.get(key, 0)
        assert row["live_bytes"] - row["new_bytes"] + row["gone_bytes"] == then.get(key, 0)
    assert "is not a time of a trace" in asked("live", "--at", "soon", code=2)
    assert "bytes in" in asked("live", "--by", "type", "--at", "peak", "--top", "2").splitlines()[0]


def test_a_flame_graph_is_a_file_for_browsers_and_for_other_tools(
    asked: Any, tmp_path: Path
) -> None:
    picture, stacks = tmp_path / "p.svg", tmp_path / "p.folded"
    asked("flame", "-o", str(picture), "--compare", "gc:4", "--theme", "dark")
    root = ET.parse(picture).getroot()
    titles = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(one.startswith("Promote.build") for one in titles)
    asked("flame", "-o", str(stacks), "--of", "allocated", "--count")
    lines = [line.rpartition(" ") for line in stacks.read_text().splitlines()]
    made = sum(int(count) for stack, _, count in lines if stack.endswith(";Promote$Tmp"))
    assert made == ALLOCATED["Promote$Tmp"]
    asked("flame", "-o", str(stacks), code=2)
    asked("flame", "-o", str(tmp_path / "p.png"), code=2)
    asked("flame", "-o", str(tmp_path / "q.svg"), "--of", "temporary", "--since", "gc:1", code=2)


@pytest.mark.usefixtures("read_once")
def test_objects_that_the_next_collection_finds_dead_are_temporary(asked: Any) -> None:
    rows = json.loads(asked("churn", "--json", "--type", "Promote$Tmp"))["rows"]
    assert sum(row["allocated_objects"] for row in rows) == ALLOCATED["Promote$Tmp"]
    assert sum(row["temporary_objects"] for row in rows) >= ALLOCATED["Promote$Tmp"] - 3
