"""A program whose freed memory stays: one of seven buffers lives on, and keeps the page that it shares with the others.

Run it with PYTHONMALLOC=malloc, so that malloc has the buffers.
"""

import sys

buffers = [bytearray(300) for _ in range(60_000)]
kept = buffers[::7]
del buffers
sys.stdout.write(f"{len(kept)} buffers are kept\n")
sys.stdout.flush()
input()
