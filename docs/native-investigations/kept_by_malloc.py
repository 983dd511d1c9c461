"""A program that freed nearly all: every fortieth buffer stays, and whole free pages lie between.

Run it with PYTHONMALLOC=malloc, so that malloc has the buffers.
"""

import sys

buffers = [bytearray(5_000) for _ in range(30_000)]
kept = buffers[::40]
del buffers
sys.stdout.write(f"{len(kept)} buffers are kept\n")
sys.stdout.flush()
input()
