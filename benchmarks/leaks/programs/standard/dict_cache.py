r"""A small web shop that keeps each rendered page.

Cause: a dictionary is used as a cache, and no entry is ever removed
Holder: __main__\.PAGES
"""

from __future__ import annotations

from benchmarks.leaks.pace import growing

PAGES: dict[str, str] = {}


def page(path: str) -> str:
    """Render a page, or take it from the cache."""
    if path not in PAGES:
        PAGES[path] = f"<h1>{path}</h1>" + f"<p>{path}</p>" * 20
    return PAGES[path]


def main() -> None:
    """Serve pages; each request has a query string of its own."""
    for number in growing(check_every=200):
        page(f"/product?session={number}")


if __name__ == "__main__":
    main()
