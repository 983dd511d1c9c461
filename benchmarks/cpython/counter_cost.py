"""Cost of a counter: nanoseconds of processor time for each increment, in pairs with the same code without counters.

    python -m benchmarks.cpython.counter_cost [--python PATH]... [--pairs N] [--json]

Ten tuples are made in a loop, at ten sites. One counter a site is incremented for each; a path has one for all ten.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.figures import tell

__all__ = ["MEASURED_LOOP", "main", "options_of"]

MEASURED_LOOP = """
import json, statistics, sys, time
from gcspy_counting.plans.plan import PlanKind
from gcspy_counting.program import CountedProgram
from gcspy_counting.sites import SiteChoice

SOURCE = "def f(n, a, b):\\n    for _ in range(n):\\n" + "        x = a, b\\n" * 10
ROUNDS = 100_000

def seconds(function):
    begin = time.process_time()
    function(ROUNDS, 1, 2)
    return time.process_time() - begin

plain = {}
exec(compile(SOURCE, "s", "exec"), plain)
"""
"""A program that makes ten tuples in a loop, and `seconds` of it; `gcspy_counting` must be on the path."""

_MEASURE = (
    f"""
import sys
sys.path.insert(0, sys.argv[1])
{MEASURED_LOOP}"""
    """
found = {"version": "%d.%d" % sys.version_info[:2]}
for plan in ("site", "paths"):
    program = CountedProgram(PlanKind(plan), SiteChoice.DEFINITE)
    names = {}
    exec(program.instrument(compile(SOURCE, "s", "exec")), names)
    plain["f"](1000, 1, 2)
    names["f"](1000, 1, 2)
    before = program.increments()
    pairs = [(seconds(plain["f"]), seconds(names["f"])) for _ in range(int(sys.argv[2]))]
    increments = (program.increments() - before) / len(pairs)
    found[plan] = statistics.median(counted - alone for alone, counted in pairs) / increments * 1e9
    found["tuple"] = statistics.median(alone for alone, _ in pairs) / ROUNDS / 10 * 1e9
print(json.dumps(found))
"""
)


def measure(python: str, pairs: int) -> dict[str, Any]:
    """Return nanoseconds for each increment of a site and of a path, and of a tuple alone.

    Raises:
        RuntimeError: It failed.
    """
    import gcspy_counting

    folder = str(Path(gcspy_counting.__file__).parents[1])
    done = subprocess.run(
        [python, "-c", _MEASURE, folder, str(pairs)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def options_of(about: str | None, pairs: int) -> argparse.Namespace:
    """Return the options of a benchmark of counters: `pythons` (None: this one), `pairs` and `json`.

    Args:
        about: Its description.
        pairs: The default number of pairs.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", dest="pythons")
    parser.add_argument("--pairs", type=int, default=pairs)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Measure and print."""
    options = options_of(__doc__, 9)
    try:
        results = [measure(each, options.pairs) for each in options.pythons or [sys.executable]]
    except (OSError, RuntimeError) as error:
        print(f"counter_cost: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(results))
    else:
        print("| Python | ns an increment, of a site | of a path | ns a tuple and the loop |")
        print("|---|--:|--:|--:|")
    for each in results:
        if not options.json:
            print(
                f"| {each['version']} | {each['site']:.1f} | {each['paths']:.1f} | {each['tuple']:.1f} |"
            )
        tell(f"counter, {each['version']}, ns an increment", each["site"], "ns", budget="told")
    return 0


if __name__ == "__main__":
    sys.exit(main())
