"""Writes down the objects that it makes, and when they die: ``own_log.py LOG``; for CPython 3.9 to 3.15."""

from __future__ import annotations

import gc
import sys
import threading

LOG: list[tuple[int, int]] = []


class Node:
    __slots__ = ("other", "value")

    other: list[Node]

    def __init__(self, value: int) -> None:
        self.value = value
        LOG.append((1, id(self)))

    def __del__(self) -> None:
        LOG.append((2, id(self)))


def make(count: int) -> list[Node]:
    return [Node(one) for one in range(count)]


def blocks() -> list[bytearray]:
    return [bytearray(1000 + one) for one in range(500)]


def rings(count: int) -> None:
    for one in range(count):
        node = Node(one)
        node.other = [node]


def work() -> list[Node]:
    kept = make(2000)
    for one in range(20):
        kept[one * 7 : one * 7 + 5] = make(5)
    rings(300)
    make(100)
    del kept[500:]
    return kept


def main() -> None:
    gc.disable()
    gc.collect()
    kept = work()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    all_blocks = blocks()
    gc.collect(1)
    gc.collect()
    log = list(LOG)
    with open(sys.argv[1], "w") as file:
        file.write("\n".join(f"{kind} {address}" for kind, address in log))
    print(len(kept), len(all_blocks))


main()
