"""A linter that is kept running: pylint for some modules, one after the other; the last ones after a full collection.

    python linter.py FILES [forget] [usual] [freeze]

With ``forget`` it empties the caches of pylint's library before the last two; with ``usual`` the
collector has its usual thresholds; with ``freeze`` what is there before the last two is taken from it.
"""

import contextlib
import gc
import io
import os
import sys
import sysconfig
import time
from pathlib import Path

from astroid.manager import AstroidManager
from pylint.lint import Run
from pylint.message import MessageDefinitionStore

MANAGER = AstroidManager()


def resident():
    """Return the resident memory, as the kernel says it."""
    with open("/proc/self/status") as file:
        return next(line for line in file if line.startswith("VmRSS")).split(None, 1)[1].strip()


def lint(files):
    """Lint, and drop the results."""
    for file in files:
        with contextlib.redirect_stdout(io.StringIO()):
            Run([str(file), "--disable=all", "--enable=E"], exit=False)


if "usual" not in sys.argv:
    gc.set_threshold(100_000, 50, 1000)  # each collection is read whole at level 3: fewer of them
collecting = [0.0, 0.0, 0]


def measure(phase, _info):
    """Sum the processor time of collections."""
    now = time.process_time()
    if phase == "stop":
        collecting[1] += now - collecting[0]
        collecting[2] += 1
    collecting[0] = now


def main():
    """Lint; collect; lint two more; collect."""
    count = int(sys.argv[1])
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    files = [file for file in files if 4_000 < file.stat().st_size < 12_000][:count]
    lint(files[:-2])
    if "forget" in sys.argv:
        MANAGER.clear_cache()
        MessageDefinitionStore.get_message_definitions.cache_clear()
    gc.collect()
    if "freeze" in sys.argv:
        gc.freeze()
    gc.callbacks.append(measure)
    begun = time.process_time()
    lint(files[-2:])
    took = time.process_time() - begun
    gc.collect()
    gc.callbacks.remove(measure)
    print(
        f"{resident()}; the last two took {took:.2f} s; {collecting[2]} collections, {collecting[1]:.3f} s"
    )
    sys.stdout.flush()
    os._exit(0)  # without the collection at the end of an interpreter


main()
