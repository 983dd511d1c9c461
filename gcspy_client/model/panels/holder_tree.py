"""Holders as a tree: the rows of an answer, grouped by the common beginnings of their paths from the roots.

Knows tables by the names of their columns, and the syntax of paths (``__main__.AUDIT[3].items``);
asks no questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gcspy_protocol.details import Cell, ColumnKind, DetailTable
from gcspy_protocol.text.rest import rest_heading

from gcspy_client.model.panels.one_object import address_of

__all__ = ["HolderNode", "holder_tree", "steps_of"]

_ADDRESS, _HOLDERS = "Address", "Holders"
_SUMMED = ("Objects", "Bytes", "Idle")
_MOST_STEPS, _MOST_CHARS = 64, 2000
"""A longer path is not divided: it would not be readable, and make a tree as deep as it is long."""
_OPENING, _CLOSING = "([{<", ")]}>"


@dataclass(eq=False)
class HolderNode:
    """A row of the tree.

    Attributes:
        label: The part of the path that it adds to the row above.
        way: The whole way from a root.
        cells: A cell for each column of the answer but the first; None is unknown, or only known
            for the rows below.
        address: Address of the holder; None: not known, or several rows are below.
        answered: Whether it is a row of the answer; False: it is a group of the rows below.
        parent: The row above.
        children: The rows below.
    """

    label: str
    way: str
    cells: tuple[Cell, ...] = ()
    address: int | None = None
    answered: bool = False
    parent: HolderNode | None = None
    children: list[HolderNode] = field(default_factory=list)


def steps_of(way: str) -> list[str]:
    """The steps of a path: ``__main__``, ``.AUDIT``, ``[3]``; text in brackets, parentheses or quotes is not divided."""
    if len(way) > _MOST_CHARS:
        return [way]
    steps: list[str] = []
    begin, depth, quote = 0, 0, ""
    for place, char in enumerate(way):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif depth == 0 and place > begin and (char in ".[" or way.startswith((", ", " ("), place)):
            steps.append(way[begin:place])
            begin = place
            depth += char in _OPENING
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING and depth:
            depth -= 1
    steps.append(way[begin:])
    return steps if len(steps) <= _MOST_STEPS else [way]


def holder_tree(table: DetailTable) -> list[HolderNode]:
    """The topmost rows, in the order of the answer; those that were left out together as the last."""
    names = [column.name for column in table.columns]
    top = HolderNode("", "")
    for row in table.rows:
        way = str(row[0] or "")
        several = _HOLDERS in names and _more_than_one(row[names.index(_HOLDERS)])
        _insert(top, [way] if several else steps_of(way), row, names)
    _shorten(top)
    _group(top)
    # Retained sizes of independent holders overlap; those of dominators do not.
    summed = _SUMMED if _HOLDERS in names else (*_SUMMED, "Retained")
    _sum_up(top, names, {name for name in summed if _sums(table, name)})
    if table.rest:
        cells = (*table.rest_cells[1:], *[None] * len(names))[: max(0, len(names) - 1)]
        rest = rest_heading(table.rest)
        top.children.append(HolderNode(rest, rest, cells, parent=top))
    for child in top.children:
        child.parent = None
    return top.children


def _more_than_one(cell: Cell) -> bool:
    return isinstance(cell, int) and cell > 1


def _insert(top: HolderNode, steps: Sequence[str], row: Sequence[Cell], names: list[str]) -> None:
    """Put a row where its way leads."""
    node = top
    for step in steps:
        below = next((one for one in node.children if one.label == step), None)
        if below is None:
            below = HolderNode(step, node.way + step, parent=node)
            node.children.append(below)
        node = below
    if node.answered:  # two rows of one way
        again = HolderNode(node.label, node.way, parent=node.parent)
        assert node.parent is not None
        node.parent.children.insert(node.parent.children.index(node) + 1, again)
        node = again
    node.answered = True
    node.cells = tuple(row[1:])
    node.address = address_of(row[names.index(_ADDRESS)]) if _ADDRESS in names else None


def _shorten(node: HolderNode) -> None:
    """Merge a row with the only row below it, if it has no information of its own; and list each row once."""
    for child in node.children:
        while not child.answered and len(child.children) == 1:
            (only,) = child.children
            child.label += only.label
            child.way, child.cells, child.address = only.way, only.cells, only.address
            child.answered, child.children = only.answered, only.children
            for below in child.children:
                below.parent = child
        if child.answered and child.children:
            itself = HolderNode("itself", child.way, child.cells, child.address, True, child)
            child.children.insert(0, itself)
            child.answered, child.cells, child.address = False, (), None
        _shorten(child)


def _group(node: HolderNode) -> None:
    """Put rows of one way, which are several objects, below one row."""
    by_label: dict[str, list[HolderNode]] = {}
    for child in node.children:
        _group(child)
        by_label.setdefault(child.label, []).append(child)
    children = []
    for label, same in by_label.items():
        if len(same) == 1:
            children += same
            continue
        group = HolderNode(label, same[0].way, parent=node, children=same)
        for number, one in enumerate(same, start=1):
            one.parent = group
            one.label = f"{number:,} of {len(same):,}"
        children.append(group)
    node.children = children


def _sums(table: DetailTable, name: str) -> bool:
    return any(one.name == name and one.kind is not ColumnKind.TEXT for one in table.columns)


def _sum_up(node: HolderNode, names: list[str], summed: set[str]) -> None:
    for child in node.children:
        _sum_up(child, names, summed)
        if child.answered:
            continue
        cells: list[Cell] = []
        for place, name in enumerate(names[1:]):
            values = [one.cells[place] for one in child.children]
            known = [one for one in values if isinstance(one, int)]
            cells.append(sum(known) if name in summed and len(known) == len(values) else None)
        child.cells = tuple(cells)
