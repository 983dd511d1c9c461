"""`gcspy lesson translate`: what a translation lacks, and catalogs for translators."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from gcspy_protocol.text.visible import Lines

from gcspy.exit_codes import ExitCode
from gcspy.options import json_option
from gcspy.output.terminal import say

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Checked:
    """A catalog and what is wrong with it.

    Attributes:
        name: The lesson, or ``interface``.
        path: The catalog.
        texts: Texts that can be translated.
        translated: How many of them are.
        problems: What is wrong.
    """

    name: str
    path: str
    texts: int
    translated: int
    problems: tuple[str, ...]


@click.command()
@click.argument("lesson", nargs=-1)
@click.option("--lang", "language", required=True, metavar="LANGUAGE", help="Language: de, pt_BR.")
@click.option(
    "--write",
    "writes",
    is_flag=True,
    help="Make the catalogs, or bring them up to date: translations stay.",
)
@json_option
@click.pass_context
def command(
    context: click.Context, lesson: tuple[str, ...], language: str, writes: bool, as_json: bool
) -> None:
    """Check the translation of lessons, and write catalogs.

    LESSON is a name from `gcspy demo --list`, a file of your own, or `interface` for the words of
    the lesson panel and of the page; without any, all that come with GCspy and have a catalog. A
    catalog is a gettext file beside the lesson: counting.de.po beside counting.md. The exit code is
    1 if a text is not translated.
    """
    from gcspy_client.lessons import find_lesson, shipped_lessons
    from gcspy_client.lessons.lesson_translation import lesson_catalog_path
    from gcspy_client.translation import chosen_language
    from gcspy_client.translation.catalog import write_catalog

    chosen = chosen_language(language)
    if not chosen:
        raise click.BadParameter(f"{language} is not a language: write it as de or pt_BR")
    names = lesson or (
        "interface",
        *(one.name for one in shipped_lessons() if lesson_catalog_path(one, chosen).exists()),
    )
    found = []
    for name in names:
        messages, path = _of(name, chosen)
        if writes:
            added = write_catalog(path, chosen, messages)
            say(f"{path}: {len(messages)} texts, {added} of them new", err=True)
        found.append(_checked(name, path, chosen, messages))
        if name != "interface" and path.exists():
            from gcspy_client.lessons.lint import lint_translation

            shown = lint_translation(find_lesson(name), chosen)
            found[-1] = _Checked(**{**asdict(found[-1]), "problems": (*found[-1].problems, *shown)})
    if as_json:
        say(json.dumps([asdict(one) for one in found]))
    else:
        lines = [line for one in found for line in _told(one)]
        say(Lines(*lines))
    context.exit(ExitCode.FAILED if any(one.problems for one in found) else ExitCode.OK)


def _of(name: str, language: str) -> tuple[dict[str, str], Path]:
    """The texts that a name stands for, and the file of their translations."""
    from gcspy_client.lessons import find_lesson
    from gcspy_client.lessons.lesson_translation import lesson_catalog_path, lesson_messages
    from gcspy_client.translation.messages import catalog_path, interface_messages

    if name == "interface":
        return interface_messages(), catalog_path(language)
    lesson = find_lesson(name)
    return lesson_messages(lesson), lesson_catalog_path(lesson, language)


def _checked(name: str, path: Path, language: str, messages: dict[str, str]) -> _Checked:
    from gcspy_client.translation import read_catalog

    if not path.exists():
        return _Checked(name, str(path), len(messages), 0, ("there is no catalog: use --write",))
    catalog = read_catalog(path, language)
    translated = len(messages) - len(catalog.missing(messages))
    return _Checked(name, str(path), len(messages), translated, tuple(catalog.problems(messages)))


def _told(one: _Checked) -> list[str]:
    head = f"{one.name}: {one.translated} of {one.texts} texts are translated ({one.path})"
    return [head, *(f"  {problem}" for problem in one.problems)]
