"""Which test functions of a folder run which lines of a package, as coverage saw it.

One run of the folder's tests under coverage in one process. What runs in child processes or as
compiled loops is not seen there; what survives the tests that were seen to run its line is therefore
shown to those that run anything of its folder.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

_OPTIONS = ("-q", "-n", "0", "-p", "no:randomly", "-p", "tests.mutation.coverage_plugin")


@dataclass(frozen=True)
class Reach:
    """Line numbers of files to test functions, and the seconds that each function takes."""

    lines: dict[str, dict[int, frozenset[str]]]
    seconds: dict[str, float]

    def tests(self, path: str, line: int) -> list[str]:
        """Return the test functions that run a line, the quickest first."""
        return self._quickest(self.lines.get(path, {}).get(line, frozenset()))

    def around(self, path: str) -> list[str]:
        """Return the test functions that run anything of a file's folder, the quickest first."""
        folder = Path(path).parent
        return self._quickest(
            frozenset().union(
                *(
                    functions
                    for file, by_line in self.lines.items()
                    if Path(file).parent == folder
                    for functions in by_line.values()
                )
            )
        )

    def within(self, secs: float, names: list[str]) -> list[str]:
        """Return as many of some test functions, from the first on, as take so long together; at least one of them."""
        ends = itertools.accumulate(self.seconds[name] for name in names)
        return [
            name
            for place, (name, end) in enumerate(zip(names, ends, strict=True))
            if not place or end <= secs
        ]

    def _quickest(self, found: frozenset[str]) -> list[str]:
        return sorted(
            (name for name in found if name in self.seconds), key=self.seconds.__getitem__
        )


def measure(copy: Path, environment: dict[str, str], package: str, folder: str) -> Reach:
    """Run the tests of a folder once, and note what they run.

    Args:
        copy: The root of the copy of the project in which they run.
        environment: With which imports come from the copy.
        package: The folder of the sources, from the root.
        folder: The folder of the tests, from the root.
    """
    data, times = copy / ".reach", copy / ".times.json"
    data.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        f"--data-file={data}",
        f"--source={package}",
    ]
    subprocess.run(
        [*command, "-m", "pytest", *_OPTIONS, folder],
        cwd=copy,
        env={**environment, "GCSPY_TEST_TIMES": str(times)},
        check=False,
        stdout=subprocess.DEVNULL,
    )
    found = CoverageData(basename=str(data))
    found.read()
    lines = {
        str(Path(file).relative_to(copy)): {
            line: frozenset(filter(None, contexts))
            for line, contexts in found.contexts_by_lineno(file).items()
        }
        for file in found.measured_files()
    }
    return Reach(lines, json.loads(times.read_text()))
