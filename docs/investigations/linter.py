"""A linter that is kept running, as an editor keeps one: pylint, called again and again in one process.

    python linter.py FILES [forget] [pylint's own options]

Lints a number of modules of the standard library, one after the other, and drops each result. With
``forget`` it also empties the cache of pylint's method
``MessageDefinitionStore.get_message_definitions`` after each. Waits for a line before it begins and
before it ends; at the end it prints its own figures of its memory.
"""

import contextlib
import gc
import io
import sys
import sysconfig
from pathlib import Path

from own_figures import tell
from pylint.lint import Run
from pylint.message import MessageDefinition, MessageDefinitionStore

_SMALLEST_BYTES, _LARGEST_BYTES = 4_000, 12_000


def main() -> None:
    """Lint, and report."""
    count = int(sys.argv[1])
    forget = "forget" in sys.argv[2:]
    options = [one for one in sys.argv[2:] if one != "forget"]
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    files = [file for file in files if _SMALLEST_BYTES < file.stat().st_size < _LARGEST_BYTES][
        :count
    ]
    print("ready", flush=True)
    sys.stdin.readline()
    for file in files:
        with contextlib.redirect_stdout(io.StringIO()):
            Run([str(file), "--disable=all", "--enable=E", *options], exit=False)
        if forget:
            MessageDefinitionStore.get_message_definitions.cache_clear()
    gc.collect()
    tell(definitions=sum(isinstance(one, MessageDefinition) for one in gc.get_objects()))
    sys.stdin.readline()


if __name__ == "__main__":
    main()
