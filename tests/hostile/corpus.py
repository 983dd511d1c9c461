"""Texts that an attacker may put where a name is expected, to have it rendered, obeyed, run or laid out for ever.

Each that has a second line begins it with `FORGED`: no line that is shown may begin so.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

__all__ = ["FORGED", "LONGEST", "MANY", "corpus"]

FORGED = "FORGED"

LONGEST = 1 << 16
"""Characters of the longest text that the protocol takes."""

MANY = 1 << 20
"""Characters of a text that it does not take."""


def _drawn(letters: str, count: int) -> str:
    """Many letters, always the same ones: a text that packs too well is refused before it is read."""
    return "".join(Random(count).choices(letters, k=count))


def corpus(sentinel: Path) -> dict[str, str]:
    """Hostile texts by name.

    Args:
        sentinel: A picture that must never be opened; the texts name it in all ways that Qt would follow.
    """
    url = sentinel.as_uri()
    return {
        "tag": f'<img src="{url}">',
        "path": f"<img src='{sentinel}'/><b>bold</b>",
        "style": f'<table background="{url}"><tr><td style="background-image:url({url})">x',
        "link": f'<a href="{url}">click</a><script>alert(1)</script>',
        "entity": f"&lt;img src={url}&gt;&#60;img src={url}&#62;&amp;&nbsp;",
        "markdown": f"![x]({url}) [y]({url}) **bold** <img src={url}>",
        "mnemonic": "&File && &amp; _x a&b [*] %1 %n {0} %s",
        "bidi": "abc\u202egpj.exe\u2066\u2067\u200f\u061c",
        "nul": "before\x00after\x01\x7f\x80\x9b31m",
        "lines": f"one\n{FORGED} two\r\n{FORGED} three\u2028{FORGED} four\x0b{FORGED} five\x85{FORGED} six",
        "break": f"one<br>{FORGED} two<p>{FORGED} three\n{FORGED}",
        "terminal": "\x1b]0;title\x07\x1b[31mred\x1b[2J\x9b5A\x1b]8;;file:///etc/passwd\x07",
        "formula": "=cmd|'/C calc'!A0",
        "at": "@SUM(1+1)*cmd|x",
        "plus": "+1+cmd|x\t=2",
        "minus": "-1+cmd|x\r=2",
        "marks": "a" + _drawn("\u0300\u0301\u0316\u0333\u0489\u20dd\u20e0", 4000),
        "surrogate": "a\ud800b\udfffc",
        "no characters": "\ufdd0\ufffe\uffff\U000e0041\U0001d173\u2060\ufeff\u00ad",
        "word": _drawn("abcdefghijklmnopqrstuvwxyz", 20_000),
        "longest": _drawn("abcdefghijklmnopqrstuvw     ", LONGEST),
        "empty": "",
        "blanks": " \t \u00a0\u3000 ",
        "svg": f'"/><image xlink:href="{url}"/><text x="',
        "percent": "%s%n%x{}{0}$(id)`id`${HOME};|&",
    }
