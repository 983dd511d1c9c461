"""The tree of errors drawn at the top of its module is the tree of its classes."""

from __future__ import annotations

import inspect
import re

from gcspy_protocol import errors

LINE = re.compile(r"(?P<branch>[ │]*(?:[├└]── )?)(?P<name>[A-Z]\w*)\b")


def drawn(text: str) -> dict[str, str | None]:
    """Return class name to base name, as drawn with four columns a level."""
    bases: dict[str, str | None] = {}
    above: list[str] = []
    for line in text.splitlines():
        found = LINE.match(line)
        if not found or not (found["branch"].endswith("── ") or found["name"] == "GCspyError"):
            continue
        depth = (
            0 if found["name"] == "GCspyError" else len(found["branch"].removeprefix("    ")) // 4
        )
        del above[depth:]
        bases[found["name"]] = above[-1] if above else None
        above.append(found["name"])
    return bases


def test_the_drawn_tree_is_the_tree_of_the_classes() -> None:
    # inspect.cleandoc would take the indentation off; the drawing is four columns in.
    classes = {
        name: thing.__bases__
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and thing.__module__ == errors.__name__
    }
    real = {
        name: None if bases == (Exception,) else bases[0].__name__
        for name, bases in classes.items()
    }
    assert drawn(errors.__doc__ or "") == real
    assert all(len(bases) == 1 for bases in classes.values()), "one tree: nobody has two bases"
    assert set(errors.__all__) == set(classes)


def test_the_reader_of_the_drawing_sees_levels() -> None:
    text = "x\n    GCspyError\n    ├── A   a\n    │   └── B  b\n    └── C  c\n"
    assert drawn(text) == {"GCspyError": None, "A": "GCspyError", "B": "A", "C": "GCspyError"}
