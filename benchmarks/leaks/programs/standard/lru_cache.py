r"""A report that is cached for each pair of dates that was ever asked for.

Cause: `functools.cache`, which is `lru_cache(maxsize=None)`, has no limit
Holder: __main__\.report \(its cache\)
"""

from __future__ import annotations

from functools import cache

from benchmarks.leaks.pace import growing


@cache
def report(first_day: int, last_day: int) -> list[int]:
    """Return the takings of each day."""
    return [day * 1_000 for day in range(first_day, last_day)]


def main() -> None:
    """Ask for reports of thirty days."""
    for day in growing(check_every=100):
        report(day, day + 30)


if __name__ == "__main__":
    main()
