"""Catalogs of translations: which language is chosen, what a catalog lacks, and that it stays when texts change."""

from __future__ import annotations

from pathlib import Path

import polib
import pytest
from click.testing import CliRunner
from gcspy_protocol.errors import CommandError

from gcspy.commands.lesson import command
from gcspy_client.translation import Catalog, current_language, languages, read_catalog, translate
from gcspy_client.translation.catalog import write_catalog
from gcspy_client.translation.messages import catalog_path, interface_messages, page_messages


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "de_AT.UTF-8"}, "de_AT"),
        ({"LANG": "de_DE", "LC_ALL": "C"}, "en"),
        ({"LANG": "C", "LANGUAGE": "?:fr:de"}, "fr"),
        ({"LANG": "de", "GCSPY_LANG": "pt-br"}, "pt_BR"),
        ({"LANG": "de", "GCSPY_LANG": "none of them"}, "de"),
    ],
)
def test_the_language_is_that_of_the_option_or_of_the_environment(
    environment: dict[str, str], language: str
) -> None:
    assert current_language(environment) == language


@pytest.mark.parametrize("language", languages())
def test_a_catalog_of_the_interface_is_whole(language: str) -> None:
    assert read_catalog(catalog_path(language), language).problems(interface_messages()) == []


def test_each_call_in_the_page_has_its_text_written_out() -> None:
    folder = catalog_path("de").parents[2] / "page"
    calls = sum(
        path.read_text().count(" T(") + path.read_text().count("(T(")
        for path in folder.glob("*.js")
        if path.name != "words.js"
    )
    assert calls > 50
    assert len(page_messages()) > 100


def test_a_text_without_translation_stays_english_and_values_are_put_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GCSPY_LANG", "de_CH")
    assert translate("Step {number} of {count}", number=2, count=7) == "Schritt 2 von 7"
    assert translate("A text that nobody translated: {number}", number=2).endswith(": 2")
    monkeypatch.setenv("GCSPY_LANG", "tlh")
    assert translate("Correct.") == "Correct."


def test_what_is_wrong_with_a_catalog_is_found() -> None:
    catalog = Catalog("de", {"a {b}": "A {c}", "**x** y": "x y", "old": "alt"})
    assert catalog.problems(["a {b}", "**x** y", "new"]) == [
        "not translated: 'new'",
        "no longer used: 'old'",
        "other placeholders than in English: 'a {b}'",
        "another number of ** than in English: '**x** y'",
    ]


def test_a_catalog_that_is_brought_up_to_date_keeps_its_translations(tmp_path: Path) -> None:
    path = tmp_path / "x.de.po"
    assert write_catalog(path, "de", {"one": "a", "two": "b"}) == 2
    file = polib.pofile(str(path))
    file[0].msgstr = "eins"
    file.save()
    assert write_catalog(path, "de", {"zero": "a", "one": "a"}) == 1
    catalog = read_catalog(path, "de")
    assert dict(catalog.texts) == {"one": "eins"}
    assert catalog.missing(["zero", "one"]) == ["zero"]


@pytest.mark.parametrize("text", ["nothing of the kind", 'msgid "a\nmsgstr', "\0\1\2"])
def test_another_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.po"
    path.write_text(text)
    with pytest.raises(CommandError, match=r"x\.po cannot be read as a gettext catalog"):
        read_catalog(path, "de")


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    lesson = tmp_path / "mine.md"
    lesson.write_text(
        '+++\ntitle = "T"\ngoal = "G"\n[simulation]\ncollector = "nogc"\n+++\n## One\n\nText\nhere.\n'
    )
    run = CliRunner().invoke
    found = run(command, ["translate", str(lesson), "--lang", "fr"])
    assert found.exit_code == 1
    assert "there is no catalog" in found.output
    run(command, ["translate", str(lesson), "--lang", "fr", "--write"])
    found = run(command, ["translate", str(lesson), "--lang", "fr"])
    assert "0 of 4 texts are translated" in found.output
    assert "not translated: 'Text here.'" in found.output
    assert run(command, ["translate", "--lang", "?"]).exit_code == 2
    assert run(command, ["translate", "--lang", "de"]).exit_code == 0
