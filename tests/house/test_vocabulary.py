"""One vocabulary: modules are named after things, and documents use the words of `GLOSSARY.md`."""

from __future__ import annotations

import ast
import re
from functools import cache

import click
import pytest

from gcspy.cli import gcspy
from tests.house.rooms import ROOT, modules, parsed

VERB_LIKE = re.compile(r"(ing|ed|grown|found|told)$")

TERMS = {
    "accessed": "a command by its name on the command line",
    "accounting": "bookkeeping of what monitoring costs and of which events were counted",
    "binding": "compilers: from a name to what it stands for",
    "binning": "statistics: values sorted into intervals",
    "copying": "garbage collection: copying an object and leaving a forwarding address",
    "encoding": "a benchmark by its name on the command line; values as bytes",
    "feed": "a noun that only looks like a participle",
    "marking": "garbage collection: the tri-colour marking of what can be reached",
    "pooling": "machine learning and image scaling: one value for many",
    "recording": "a session as a file; a benchmark by its name on the command line",
    "sliding": "garbage collection: sliding compaction",
    "tiling": "a partition of a space into tiles",
    "transcoding": "from one encoding to another",
}
"""The last words of module names that end like a verb and are nouns of the field, each with its field."""


def is_verb_like(name: str) -> bool:
    """Return whether a module's name ends like a verb and is not a term of the field."""
    return bool(VERB_LIKE.search(name)) and name.rpartition("_")[2] not in TERMS


def files() -> list[str]:
    """Return the names of all modules of the product and of the programs beside it."""
    beside = [
        path.stem
        for folder in ("benchmarks", "screenshots", "stubs", ".ci")
        for path in (ROOT / folder).rglob("*.py")
    ]
    return [*(path.stem for path in modules().values()), *beside]


def test_modules_are_named_after_things() -> None:
    assert sorted(name for name in files() if is_verb_like(name)) == []


def test_every_exception_is_in_use() -> None:
    used = {name.rpartition("_")[2] for name in files()}
    assert set(TERMS) - used == set()


@pytest.mark.parametrize("name", ["looking", "type_grown", "found", "told", "stubbed"])
def test_a_verb_is_noticed(name: str) -> None:
    assert is_verb_like(name)


IDIOMS = re.compile(
    "|".join(
        rf"\b{words}\b"
        for words in (
            "tell" + r"s?\s+of",
            "told" + r"\s+of",
            "in one" + r"\s+go",
            "looks" + r"\s+once",
            "let" + r"s?\s+go of it",
            "is" + r"\s+wi" + "shed",
            "so many" + r"\s+of",
            "run" + "g",
            "wi" + "sh(es|ed)",
        )
    ),
    re.IGNORECASE,
)
"""Idioms that read like a translation, refused in text of any kind; names in quotes of code are text too."""

ALIASES = {
    "drivers/native/hotspot_agent.c": 1,  # its hash names the library that is built from it
    "gcspy/options.py": 1,
    "tests/protocol/vectors.py": 3,
    "tests/replay/test_player.py": 1,
}
"""Where a former name has to stand, and how often: the hidden alias, and bytes that were recorded with it."""


def texts() -> dict[str, str]:
    """Return every document and source with readers; the change log keeps the words of its time."""
    found = {}
    for folder in ("", *(path.name for path in ROOT.iterdir() if path.is_dir())):
        if folder.startswith(".") or folder == "build":
            continue
        for suffix in ("py", "md", "c"):
            pattern = f"**/*.{suffix}" if folder else f"*.{suffix}"
            for path in (ROOT / folder).glob(pattern):
                found[path.relative_to(ROOT).as_posix()] = path.read_text(errors="replace")
    del found["CHANGELOG.md"]
    return found


def test_no_text_reads_like_a_translation() -> None:
    count = {name: len(IDIOMS.findall(text)) for name, text in texts().items()}
    assert {name: number for name, number in count.items() if number} == ALIASES


def test_an_idiom_is_noticed_across_lines() -> None:
    assert IDIOMS.search("what the trace tells" + "\n" + "of objects")
    assert not IDIOMS.search("what the trace says about objects, and a rounding error")


VISIBLE = re.compile(
    "|".join(
        rf"\b(?:{words})\b"
        for words in (
            "anew",
            "beforehand",
            "comes? along",
            "goes? on",
            "in (?:its|their) stead",
            "is not there",
            "is there already",
            "lately",
            "let in",
            "lets? go",
            "looked at",
            "looks? (?:closer|into|at)",
            "makes? no sense",
            "nobody (?:controls|is|knows|listens|may|wants)",
            "of ours",
            "so many",
            "sought",
            "stands? still",
            "stood still",
            "that is none",
            "told",
            "went on",
            "what watching",
            "whoever",
            "without a word",
            # As in "a.txt is no recording": a native speaker says "is not a recording".
            r"(?<!there )(?:is|are) no (?!longer\b|more\b)\w+",
        )
    ),
    re.IGNORECASE,
)
"""Idioms refused in messages, help texts, tips and titles, but not in docstrings."""


def messages(source: str) -> list[str]:
    """Return the texts of a source that a user may see: its strings, without docstrings, names and SQL."""
    nodes = list(ast.walk(parsed(source)))
    bodies = [body for node in nodes if isinstance(body := getattr(node, "body", 0), list)]
    silent = {id(one.value) for body in bodies for one in body if isinstance(one, ast.Expr)}
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in silent
        and " " in node.value.strip()
        and not re.search(r"\b(?:SELECT|FROM)\b", node.value)
    ]


def may_have_idiom(source: str) -> bool:
    """Return whether a source has an idiom anywhere, in docstrings and comments too: most have none, and need not be parsed."""
    joined = re.sub(r"""["'][ \n]*[rf]?["']""", "", source.replace(r"\n", " "))
    return VISIBLE.search(joined) is not None


def test_no_message_reads_like_a_translation() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): said
        for path in modules().values()
        if may_have_idiom(source := path.read_text())
        and (said := [one for one in messages(source) if VISIBLE.search(one)])
    }
    assert found == {}


def helps(group: click.Group, context: click.Context) -> dict[str, str]:
    """Return the help of each command of a group, and of the commands of groups within it."""
    found = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        inner = click.Context(command, info_name=name, parent=context)
        found[inner.command_path] = command.get_help(inner)
        if isinstance(command, click.Group):
            found |= helps(command, inner)
    return found


def test_no_help_reads_like_a_translation() -> None:
    found = helps(gcspy, click.Context(gcspy, info_name="gcspy"))
    assert len(found) > 25
    said = {name: VISIBLE.findall(re.sub(r"\s+", " ", text)) for name, text in found.items()}
    assert {name: words for name, words in said.items() if words} == {}


@pytest.mark.parametrize(
    "text",
    ["a.txt is no recording", "The program goes on.", "it is there already", "nobody controls it"],
)
def test_a_message_that_reads_like_a_translation_is_noticed(text: str) -> None:
    source = f'"""Goes on."""\nprint({text!r})'
    assert [one for one in messages(source) if VISIBLE.search(one)]
    first, _, rest = text.partition(" ")
    for written in (source, f'print("{first} "\n    f"{rest}")', f'print("{first}\\n{rest}")'):
        assert may_have_idiom(written), written


@pytest.mark.parametrize("text", ["there is no file x", "it is no longer open", "the tool"])
def test_plain_english_is_let_pass(text: str) -> None:
    assert not [one for one in messages(f"print({text!r})") if VISIBLE.search(one)]


@cache
def refused() -> dict[str, str]:
    """Return the words that the glossary refuses, each with the term that stands for it."""
    section = (ROOT / "GLOSSARY.md").read_text().partition("## Words that are not used")[2]
    rows = re.findall(r"^\| ([\w -]+) \| ([\w -]+) \|$", section, re.MULTILINE)
    return dict(rows[1:])


def refused_in(text: str) -> set[str]:
    """Return the refused words of a text, written apart, joined or in capitals."""
    low = re.sub(r"[\s_]+", " ", text.lower())
    return {
        word
        for word in refused()
        if word.split()[0] in low and re.search(rf"\b{word.replace(' ', ' ?')}\b", low)
    }


def test_refused_words_are_not_used() -> None:
    found = {name: refused_in(text) for name, text in texts().items() if name != "GLOSSARY.md"}
    assert {name: words for name, words in found.items() if words} == {}


def test_a_refused_word_is_noticed() -> None:
    assert len(refused()) >= 7
    assert refused_in("class Lasting" + "Link:") == {"lasting" + " link"}
    assert refused_in("the controller watchdog, the hand-off queue") == set()
