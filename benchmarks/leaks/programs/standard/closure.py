r"""A decorator of one's own that remembers all results of a function.

Cause: a dictionary in the closure of a decorated function is never emptied
Holder: __main__\.primes\.__closure__(\[\d+\])?.*cell_contents
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.leaks.pace import growing


def remembered(function: Callable[[int], list[int]]) -> Callable[[int], list[int]]:
    """Return a function that computes each result once."""
    results: dict[int, list[int]] = {}

    def call(number: int) -> list[int]:
        if number not in results:
            results[number] = function(number)
        return results[number]

    return call


@remembered
def primes(number: int) -> list[int]:
    """Return the smallest numbers above 1,000 that a number divides, times itself."""
    return [1_000 + number * factor for factor in range(1, 40)]


def main() -> None:
    """Ask for numbers that come once each."""
    for number in growing(check_every=50):
        primes(number)


if __name__ == "__main__":
    main()
