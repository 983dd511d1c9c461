"""A program whose threads have an arena each: each freed nearly all that it made, and keeps one buffer.

Run it with PYTHONMALLOC=malloc and MALLOC_ARENA_MAX=64, so that malloc has the buffers and as many arenas.
"""

import sys
import threading

kept: list[bytearray] = []
made, freed = threading.Barrier(33), threading.Barrier(33)


def work() -> None:
    """Make some MB, keep one buffer, and wait."""
    buffers = [bytearray(40 + number % 700) for number in range(3_000)]
    made.wait()
    kept.append(buffers[-1])
    del buffers
    freed.wait()
    threading.Event().wait()


for _ in range(32):
    threading.Thread(target=work, daemon=True).start()
made.wait()
freed.wait()
sys.stdout.write(f"{len(kept)} buffers are kept\n")
sys.stdout.flush()
input()
