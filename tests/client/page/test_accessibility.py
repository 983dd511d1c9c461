"""What a screen reader is told by the browser's own accessibility tree: roles, names, and live regions. No person with a screen reader took part."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gcspy_client.lessons import find_lesson
from gcspy_client.lessons.lesson import LessonQuestion
from tests.client.page.browser import Browser, Chromium, Firefox
from tests.client.page.test_in_browser import lesson_page
from tests.waiting import wait_until

OPERATED = {"button", "slider", "radio", "textbox", "combobox", "application", "spinbutton", "checkbox", "link"}  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gcspy-browser-", ignore_cleanup_errors=True) as one:
        yield Path(one)


class Tree:
    """The accessibility tree of Chromium."""

    def __init__(self, browser: Chromium) -> None:
        nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
        self.nodes = [one for one in nodes if not one.get("ignored")]
        self._by_id = {one["nodeId"]: one for one in nodes}

    @staticmethod
    def told(node: dict[str, Any]) -> tuple[str, str]:
        """Role and name of a node."""
        return str(node["role"]["value"]), str(node.get("name", {}).get("value", ""))

    @staticmethod
    def properties(node: dict[str, Any]) -> dict[str, Any]:
        return {one["name"]: one["value"].get("value") for one in node.get("properties", ())}

    def text_below(self, node: dict[str, Any]) -> str:
        """What a region says."""
        said, left = [], [node]
        while left:
            one = left.pop()
            role, name = self.told(one) if "role" in one else ("", "")
            if role == "StaticText":
                said.append(name)
            left += [self._by_id[child] for child in reversed(one.get("childIds", ())) if child in self._by_id]  # fmt: skip
        return " ".join(said)

    def live(self) -> list[str]:
        """What each polite or assertive region says now."""
        return [
            self.text_below(one) for one in self.nodes if self.properties(one).get("live") in ("polite", "assertive")
        ]  # fmt: skip


def asked(browser: Browser, folder: Path) -> tuple[LessonQuestion, list[int]]:
    """Open a lesson at its first question; return it, and the order of its choices."""
    browser.open(lesson_page("tiles", folder))
    browser.press("n")
    browser.wait("gcspy.lesson.at === 1 && !gcspy.lesson.running && gcspy.lesson.asks")
    question = find_lesson("tiles").steps[1].question
    assert question is not None
    order = browser.evaluate(
        "[...document.querySelectorAll('.choice')].map((one) => Number(one.dataset.choice))"
    )
    return question, order


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_chromium_names_all_that_is_operated_and_announces_question_and_answers(
    folder: Path,
) -> None:
    with Chromium(folder) as browser:
        question, order = asked(browser, folder)
        tree = Tree(browser)
        told = [tree.told(one) for one in tree.nodes]
        operated = [(role, name) for role, name in told if role in OPERATED]
        assert len(operated) > 15
        assert [one for one in operated if not one[1].strip()] == []
        # The question is a group by its own text, and each choice a button that says its text.
        assert ("group", question.ask) in told
        choices = [name for role, name in told if role == "button"]
        for choice in question.choices:
            assert any(choice in name for name in choices), choice
        regions = {name for role, name in told if role == "region"}
        assert {"Lesson", "Text of the lesson"} <= regions
        assert any(question.ask in one for one in tree.live())
        wrong = next(one for one in order if one != question.answer)
        for taken, words in (
            (wrong, f"Not correct. {question.feedback_on(wrong)} Try once more."),
            (question.answer, f"Correct. {question.because}"),
        ):
            browser.press(str(1 + order.index(taken)))
            wait_until(partial(_announced, browser, words), words)


def _announced(browser: Chromium, words: str) -> bool:
    """Whether a live region says this; emphasis is nodes of their own there."""
    return any(_same(words, one) for one in Tree(browser).live())


def _same(words: str, told: str) -> bool:
    """Whether two texts are the same without spaces and emphasis."""
    return "".join(words.split()).replace("*", "") in "".join(told.split())


@pytest.mark.matrix
@pytest.mark.skipif(shutil.which("firefox-esr") is None, reason="firefox-esr is not installed")
def test_firefox_finds_the_choices_and_the_regions_by_role_and_name(folder: Path) -> None:
    with Firefox(folder) as browser:
        question, _ = asked(browser, folder)

        def located(**value: str) -> int:
            found = browser.command(
                "browsingContext.locateNodes",
                context=browser._context,
                locator={"type": "accessibility", "value": value},
            )
            return len(found["nodes"])

        assert located(role="group", name=question.ask) == 1
        assert located(role="region", name="Lesson") == 1
        assert located(role="slider", name="Timeline") == 1
        assert located(role="button") > 10
        assert located(role="button", name=json.dumps("no such name")) == 0
