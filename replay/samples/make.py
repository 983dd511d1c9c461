"""Make the samples again: ``python replay/samples/make.py --python /usr/bin/python3.11``.

Real recordings of real programs, made by the `gcspy` command: small enough for a repository, long
enough to be interesting. A recording names the files that its target has mapped; using the system's
interpreter keeps private folders out of it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent
ROOT = SAMPLES.parents[1]

DEMO = "demo-cpython-3.11.gcspy"
SEMISPACE = "semispace.gcspy"


@contextmanager
def running(arguments: list[str], environment: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Run a program; yields its PID and its first line, which means that it is ready."""
    with subprocess.Popen(
        arguments,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        try:
            line = program.stdout.readline()
            if not line:
                raise SystemExit(f"{arguments[0]} ended immediately, exit code {program.wait()}")
            yield program.pid, line
        finally:
            program.kill()


def record(source: str, name: str, environment: dict[str, str], *options: str) -> None:
    """Record to a sample."""
    command = [
        sys.executable,
        "-m",
        "gcspy",
        "record",
        source,
        "-o",
        str(SAMPLES / name),
        "--force",
        *options,
    ]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def main() -> None:
    """Record both."""
    parser = argparse.ArgumentParser(description="Make the sample recordings again.")
    parser.add_argument(
        "--python", default="python3.11", help="interpreter of the demo (default %(default)s)"
    )
    python = parser.parse_args().python
    with tempfile.TemporaryDirectory(prefix="gcspy-samples-") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        # Relative, so that no folder of ours is part of its command line.
        demo = [python, "gcspy/demo/workload.py", "--seconds", "60"]
        with running(demo, environment) as (pid, _):
            record(
                str(pid), DEMO, environment, "--clock", "2", "--tiles", "1024", "--seconds", "20"
            )
        with running([sys.executable, "-m", "gcspy_drivers.semispace"], environment) as (_, line):
            record(line.split()[-1], SEMISPACE, environment, "--events", "100")


if __name__ == "__main__":
    main()
