"""A program with a hundred idle threads, of which each has filled all bins of its cache of freed chunks.

Run it with PYTHONMALLOC=malloc, so that malloc has the buffers.
"""

import ctypes
import sys
import threading

THREADS, SIZES, OF_EACH = 100, range(24, 1033, 16), 7
library = ctypes.PyDLL(None)  # keeps the lock, so that threads do not wait for each other in malloc
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = (ctypes.c_void_p,)
done = threading.Barrier(THREADS + 1)


def work() -> None:
    """Make seven chunks of each size that a cache takes, free them, and wait."""
    chunks = [library.malloc(size) for size in SIZES for _ in range(OF_EACH)]
    for chunk in chunks:
        library.free(chunk)
    done.wait()
    threading.Event().wait()


for _ in range(THREADS):
    threading.Thread(target=work, daemon=True).start()
done.wait()
freed = THREADS * OF_EACH * sum(size + 8 for size in SIZES)
sys.stdout.write(f"{freed} bytes were freed into the caches of threads\n")
sys.stdout.flush()
input()
