"""A server with a large catalogue in memory, of which each request reads a little.

    python catalogue.py RECORDS [freeze]

With ``freeze`` the catalogue is put aside when it is loaded, so that the collector does not visit it.
"""

import gc
import os
import random
import sys
import time


class Record:
    """One article."""

    def __init__(self, number):
        self.number, self.name, self.tags = number, f"article {number}", [number % 7, number % 11]


gc.set_threshold(100_000, 50, 1000)  # each collection is read whole at level 3: fewer of them


def main():
    """Load, then serve requests; tell what full collections took."""
    catalogue = {number: Record(number) for number in range(int(sys.argv[1]))}
    gc.collect()
    if "freeze" in sys.argv:
        gc.freeze()
    took = []

    def note(phase, info):
        if info["generation"] == 2:
            took.append(
                time.process_time() if phase == "start" else time.process_time() - took.pop()
            )

    gc.callbacks.append(note)
    chance = random.Random(1)
    for _turn in range(6):
        for _ in range(20000):
            found = catalogue[chance.randrange(len(catalogue) // 50)]
            answer = {"name": found.name, "tags": found.tags}
            answer["self"] = answer  # a cycle
        gc.collect()
    print(
        f"{len(took)} full collections, {1000 * sorted(took)[len(took) // 2]:.1f} ms of processor each"
    )
    sys.stdout.flush()
    os._exit(0)  # without the collection at the end of an interpreter


main()
