r"""A model class that registers each of its instances, as some object mappers do.

Cause: a list that is an attribute of a class gets every instance, and loses none
Holder: __main__\.Order\.registry
"""

from __future__ import annotations

from typing import ClassVar

from benchmarks.leaks.pace import growing


class Order:
    """An order; `registry` has all that were ever made."""

    registry: ClassVar[list[Order]] = []

    def __init__(self, number: int) -> None:
        self.number = number
        self.lines = [f"article {number + line}" for line in range(5)]
        self.registry.append(self)


def main() -> None:
    """Take orders; each is forgotten at once by whoever made it."""
    for number in growing(check_every=100):
        Order(number)


if __name__ == "__main__":
    main()
