r"""A shop in which each cart listens for price changes with blinker, strongly.

Cause: receivers connected with `weak=False` stay in the three tables of a signal until `disconnect`
Holder: __main__\.PRICE_CHANGED
"""

from __future__ import annotations

from blinker import Signal

from benchmarks.leaks.pace import growing

PRICE_CHANGED = Signal()


class Cart:
    """The articles that a customer wants to buy."""

    def __init__(self, customer: int) -> None:
        self.lines = [f"article {line} for customer {customer}" for line in range(10)]
        PRICE_CHANGED.connect(self.update, weak=False)

    def update(self, sender: object) -> None:
        """Show the new prices."""
        self.lines.append(f"{sender} changed")


def main() -> None:
    """Serve customers."""
    for customer in growing(check_every=50):
        Cart(customer)


if __name__ == "__main__":
    main()
