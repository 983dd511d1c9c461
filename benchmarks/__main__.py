"""`python -m benchmarks`: all of them, one after the other, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("encoding", "cost", "viewers", "paint", "start", "recording", "history")


def main() -> int:
    """Run all; the exit code is 1 when one could not run."""
    wanted = sys.argv[1:] or BENCHMARKS
    if unknown := [name for name in wanted if name not in BENCHMARKS]:
        print(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    failed = []
    for name in wanted:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"could not run: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
