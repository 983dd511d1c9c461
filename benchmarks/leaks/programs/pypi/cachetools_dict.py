r"""A price list whose answers are cached with cachetools, in a dictionary.

Cause: `cachetools.cached` is given a `dict`, which has no limit, and not an `LRUCache`
Holder: __main__\.price\.(cache|__closure__.*|__wrapped__.*)
"""

from __future__ import annotations

import cachetools

from benchmarks.leaks.pace import growing


@cachetools.cached(cache={})
def price(article: int, day: int) -> str:
    """Say what an article costs on a day."""
    return f"article {article} costs {article * day % 1000} on day {day}; " + "taxes, " * 20


def main() -> None:
    """Ask for prices that are never asked for again."""
    for number in growing(check_every=200):
        price(number, number // 1000)


if __name__ == "__main__":
    main()
