"""Text from a stranger, made safe to display: invisible or misleading characters become visible escapes.

A name in a recording, on the wire, in a trace or in a file name may contain anything: an escape
sequence that a terminal obeys, a NUL, a bidirectional override that reverses the rest of the line,
a line break that forges another line, two hundred combining marks on one letter.

Knows Unicode; does not know terminals, widgets or files.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["MOST_MARKS", "Lines", "shortened", "visible", "visible_lines"]

MOST_MARKS = 6
"""Maximum combining marks on one letter; no living script needs more."""

_MISLEADING = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters: NUL, escape, line breaks, backspace …
    "\xad"  # soft hyphen: invisible
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # direction marks, overrides, isolates
    "\u180e\u200b\u2060-\u2065\ufeff\ufff9-\ufffb"  # invisible separators and annotations
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # half a surrogate pair: a file name that is not Unicode; no stream can write it
    "\ufdd0-\ufdef\ufffe\uffff"  # noncharacters
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # invisible controls, tags
    "]"
)
_MARKS = re.compile(f"[^\x00-\u02ff]{{{MOST_MARKS + 1},}}")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""A text as one line without hidden characters; most texts are returned unchanged.

    Control characters, line breaks, direction overrides and other invisible characters become
    escapes as Python writes them: ``\n``, ``\x1b``, ``\u202e``. So do combining marks beyond
    `MOST_MARKS` on one letter. A backslash stays as it is: the text is for people to read.
    """
    if text.isascii() and text.isprintable():
        return text
    return _MARKS.sub(_fewer_marks, _MISLEADING.sub(_escaped, text))


def visible_lines(text: str) -> str:
    """A text of several lines in which nothing but the line breaks is hidden; tabs become blanks."""
    if text.isascii() and text.isprintable():
        return text
    return "\n".join(
        visible(line.replace("\t", "    ")) for line in text.replace("\r\n", "\n").split("\n")
    )


class Lines(str):
    """A text of several lines on purpose: each part is one, whatever stands in it.

    Where a text may have lines, only one that is given as `Lines` has any: in all others a line break is shown as an
    escape, so that no name can forge a line. Formatting or joining it makes an ordinary text.

    Args:
        parts: The lines; one that is `Lines` itself stands for all of its own.
    """

    __slots__ = ()

    def __new__(cls, *parts: str) -> Lines:
        """Join the parts."""
        return super().__new__(
            cls, "\n".join(part if isinstance(part, Lines) else visible(part) for part in parts)
        )

    @classmethod
    def of(cls, text: str) -> Lines:
        """A text that is meant to have lines: ours, or what a stranger tells at length where nothing follows it."""
        return cls(*visible_lines(text).split("\n"))


def shortened(text: str, most: int) -> str:
    """The beginning of a long text, and how much there was.

    Args:
        text: Any text.
        most: Characters that may be kept.
    """
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text):,} characters)"


def _escaped(match: re.Match[str]) -> str:
    return _escape(match[0])


def _escape(letter: str) -> str:
    number = ord(letter)
    if letter in _SHORT:
        return _SHORT[letter]
    return (
        f"\\x{number:02x}"
        if number < 0x100
        else f"\\u{number:04x}"
        if number < 0x10000
        else f"\\U{number:08x}"
    )


def _fewer_marks(match: re.Match[str]) -> str:
    out, run = [], 0
    for letter in match[0]:
        run = run + 1 if unicodedata.category(letter) in ("Mn", "Me") else 0
        out.append(letter if run <= MOST_MARKS else _escape(letter))
    return "".join(out)
