r"""A parser that makes trees whose nodes know their parents, in a program that has switched the collector off for speed.

Cause: reference cycles are garbage, and `gc.disable()` leaves them in memory
Holder: garbage: .*
"""

from __future__ import annotations

import gc

from benchmarks.leaks.pace import growing


class Node:
    """An element of a document."""

    def __init__(self, name: str, parent: Node | None = None) -> None:
        self.name = name
        self.parent = parent
        self.children: list[Node] = []
        if parent is not None:
            parent.children.append(self)


def parse(number: int) -> int:
    """Build a tree, and count it."""
    root = Node(f"document {number}")
    for part in range(10):
        Node(f"part {part} of {number}", root)
    return len(root.children)


def main() -> None:
    """Parse documents; nobody keeps the trees."""
    gc.disable()
    for number in growing(check_every=50):
        parse(number)


if __name__ == "__main__":
    main()
