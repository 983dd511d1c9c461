"""A process that keeps a session much larger than its budgets, scrubs in it all the time, and reports its memory use.

Run as ``python -m tests.client.keeping_program MEMORY DISK QUEUE TIMES SEED``; prints one JSON object.
"""

from __future__ import annotations

import gc
import json
import sys

import numpy as np
import psutil

from gcspy_client.model.playback.time_shift import TimeShift
from tests.client.shifting import Steady

TILES = 200_000


def main() -> None:
    memory_bytes, disk_bytes, queue_bytes, times, seed = map(int, sys.argv[1:])
    random = np.random.default_rng(seed)
    process = psutil.Process()
    shift = TimeShift(memory_bytes=memory_bytes, disk_bytes=disk_bytes, queue_bytes=queue_bytes)
    session = Steady(shift, tiles=TILES, noise=True)
    session.connect()
    session.events(20)  # everything that is imported or made once is there now
    shift.settle(60)
    shift.at(shift.last)
    gc.collect()
    before = most = process.memory_info().rss
    wrong = looked = most_waiting = 0
    while session.sent_bytes < times * (memory_bytes + disk_bytes):
        session.events(1)
        most_waiting = max(most_waiting, shift.status.waiting_bytes)
        if not session.room:
            shift.settle(60)
        if session.number % 7 == 0:
            status = shift.status
            number = int(random.integers(status.first, status.last + 1))
            if number < status.first + 50:
                shift.settle(60)  # so that it is not dropped while it is read
                number = max(number, shift.first)
            found = shift.at(number).spaces[1].streams[2].values
            wrong += not np.array_equal(found, session.values(number))
            looked += 1
        most = max(most, process.memory_info().rss)
    shift.settle(60)
    status = shift.status
    print(
        json.dumps(
            {
                "sent_bytes": session.sent_bytes,
                "events": session.number,
                "first": status.first,
                "last": status.last,
                "most_memory_bytes": status.most_memory_bytes,
                "disk_bytes": status.disk_bytes,
                "most_waiting_bytes": most_waiting,
                "rss_growth": most - before,
                "looked": looked,
                "wrong": wrong,
                "reason": status.reason,
            }
        )
    )
    shift.close()


if __name__ == "__main__":
    main()
