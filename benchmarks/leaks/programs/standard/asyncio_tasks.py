r"""A server that keeps its background tasks in a set, so that they are not collected, and forgets to discard them when they are done.

Cause: finished asyncio tasks stay in a set, with their results
Holder: __main__\.BACKGROUND
"""

from __future__ import annotations

import asyncio

from benchmarks.leaks.pace import growing

BACKGROUND: set[asyncio.Task[list[str]]] = set()


async def handle(request: int) -> list[str]:
    """Answer a request."""
    await asyncio.sleep(0)
    return [f"line {line} of answer {request}" for line in range(20)]


async def main() -> None:
    """Start a task for each request."""
    for request in growing(check_every=50):
        BACKGROUND.add(asyncio.create_task(handle(request)))
        await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(main())
