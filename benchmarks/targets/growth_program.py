"""A program that grows, shrinks and collects when a line tells it to, and answers when it is done: for `growth_target.py`.

Lines: ``fill NAME SIZE COUNT``, ``drop NAME``, ``thin NAME STEP`` (keeps each STEP-th object), ``collect``.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Obey lines until there are no more."""
    kept: dict[str, list[bytes]] = {}
    gc.disable()  # collections happen when they are asked for
    print("ready", flush=True)
    for line in sys.stdin:
        match line.split():
            case ["fill", name, size, count]:
                kept.setdefault(name, []).extend(bytes(int(size)) for _ in range(int(count)))
            case ["drop", name]:
                del kept[name]
            case ["thin", name, step]:
                kept[name] = kept[name][:: int(step)]
            case ["collect"]:
                gc.collect()
            case words:
                print(f"unknown: {words}", flush=True)
                continue
        print("done", flush=True)


if __name__ == "__main__":
    main()
