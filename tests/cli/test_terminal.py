"""Nothing that a terminal obeys is printed."""

from __future__ import annotations

import ast

import pytest
from gcspy_protocol.text.visible import Lines

from gcspy.output.terminal import say, say_aside, say_json
from tests.house.rooms import PACKAGES


def test_escapes_of_a_terminal_are_seen_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\tb\n\x1b]0;title\x07\x1b[31mred \u202eright\x00")
    assert capsys.readouterr().out == "a\tb\\n\\x1b]0;title\\x07\\x1b[31mred \\u202eright\\x00\n"


def test_only_what_is_given_as_lines_has_several(capsys: pytest.CaptureFixture[str]) -> None:
    say(Lines("first", "second\nforged"))
    say_aside("a file\nforged.gcspy")
    say_json({"name": "a\nb"})
    out, err = capsys.readouterr()
    assert out == 'first\nsecond\\nforged\n{\n  "name": "a\\nb"\n}\n'
    assert err == "gcspy: a file\\nforged.gcspy\n"


def test_each_command_prints_by_it() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path in PACKAGES["gcspy"].rglob("*.py")
        if path.name != "terminal.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("echo", "secho")
    ]
    assert found == []
