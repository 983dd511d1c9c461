"""A generator of documentation: pdoc for packages, as its command runs it, with a full collection before the last modules and at the end.

    python documenter.py LAST PACKAGE… [forget] [usual] [freeze]

The last LAST modules are observed. With ``forget`` pdoc's caches are emptied after each module; with
``usual`` the collector has its usual thresholds; with ``freeze`` what is there before the first module
is taken from it.
"""

import functools
import gc
import hashlib
import linecache
import os
import sys
import tempfile
import time
from pathlib import Path

import pdoc
import pdoc.doc
import pdoc.doc_ast
import pdoc.docstrings
import pdoc.render
import pdoc.render_helpers

MODULES = (pdoc.doc, pdoc.doc_ast, pdoc.docstrings, pdoc.render_helpers)
CACHES = [one for module in MODULES for one in vars(module).values() if hasattr(one, "cache_clear")]


def resident():
    """Return the resident memory, as the kernel says it."""
    with open("/proc/self/status") as file:
        return next(line for line in file if line.startswith("VmRSS")).split(None, 1)[1].strip()


WORDS = ("forget", "usual", "freeze")
if "usual" not in sys.argv:
    gc.set_threshold(100_000, 50, 1000)  # each collection is read whole at level 3: fewer of them
collecting = [0.0, 0.0]


def measure(phase, _info):
    """Sum the processor time of collections."""
    now = time.process_time()
    if phase == "stop":
        collecting[1] += now - collecting[0]
    collecting[0] = now


def main():
    """Document all modules; collect before the last ones, and at the end."""
    last, *packages = [word for word in sys.argv[1:] if word not in WORDS]
    forgets = "forget" in sys.argv
    render = pdoc.render.html_module
    done = []

    @functools.wraps(render)
    def html_module(module, all_modules, *more, **options):
        if "freeze" in sys.argv and not done:
            gc.collect()
            gc.freeze()
        text = render(module, all_modules, *more, **options)
        done.append(module.modulename)
        if forgets:
            for cache in CACHES:
                cache.cache_clear()
            linecache.clearcache()
        if len(done) == len(all_modules) - int(last):
            gc.collect()
        return text

    pdoc.render.html_module = html_module
    gc.callbacks.append(measure)
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        pdoc.pdoc(*packages, output_directory=Path(folder))
        took = time.process_time() - begun
        gc.callbacks.remove(measure)
        pages = sorted(Path(folder).rglob("*.html"))
        digest = hashlib.sha256(b"".join(page.read_bytes() for page in pages)).hexdigest()
    gc.collect()
    print(
        f"{len(done)} modules; {resident()}; took {took:.2f} s, collections {collecting[1]:.2f} s of it; pages {digest[:12]}"
    )
    sys.stdout.flush()
    os._exit(0)  # without the collection at the end of an interpreter


main()
