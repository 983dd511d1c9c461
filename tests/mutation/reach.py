"""Which test functions of a folder run which lines of a package, as coverage saw it.

One run of the folder's tests under coverage in one process. It does not see child processes and
compiled loops; a fault that survives the tests seen to run its line is therefore run against all
tests that run anything of its folder. The result can be kept in a file: only test files changed
since then are run again, or all of them when a source of the package changed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

_OPTIONS = (
    "-q", "-n", "0", "-p", "no:randomly", "-p", "tests.mutation.coverage_plugin",
    # Under coverage a test may take many times as long; one that takes too long must not end the others.
    "--timeout", "0", "-o", "faulthandler_timeout=0",
)  # fmt: skip


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
        """Return as many of the given test functions, from the first on, as together take the given time; at least one of them."""
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


def measured(
    copy: Path, environment: dict[str, str], package: str, tests: Sequence[str], kept: Path | None
) -> Reach:
    """Measure tests, and use and renew what was kept of an earlier time.

    Args:
        copy: The root of the copy of the project in which they run.
        environment: With which imports come from the copy.
        package: The folder of the sources, from the root.
        tests: Folders or files of tests, from the root.
        kept: The file with what was kept, of these tests or of others; None: all tests are run, and nothing is kept.
    """
    if kept is None:
        return measure(copy, environment, package, tests)
    wanted = {file for one in tests for file in _files(copy, one)}
    sources = _digest(sorted((copy / package).rglob("*.py")))
    old = json.loads(kept.read_text()) if kept.exists() else {}
    if old.get("sources") != sources:
        old = {"tests": {}, "lines": {}, "seconds": {}}
    files = sorted(wanted | {file for file in old["tests"] if (copy / file).is_file()})
    digests = {file: _digest([copy / file]) for file in files}
    unchanged = {file for file in files if old["tests"].get(file) == digests[file]}
    changed = [file for file in files if file not in unchanged]
    new = measure(copy, environment, package, changed) if changed else Reach({}, {})

    def remain(functions: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in functions if name.partition("::")[0] in unchanged)

    lines = {path: dict(by_line) for path, by_line in new.lines.items()}
    for path, by_line in old["lines"].items():
        of_file = lines.setdefault(path, {})
        for line, functions in by_line.items():
            of_file[int(line)] = of_file.get(int(line), frozenset()) | remain(functions)
    seconds = {name: old["seconds"][name] for name in remain(old["seconds"])} | new.seconds
    written = {
        path: {line: sorted(functions) for line, functions in by_line.items()}
        for path, by_line in lines.items()
    }
    kept.write_text(
        json.dumps({"sources": sources, "tests": digests, "lines": written, "seconds": seconds})
    )
    return Reach(lines, seconds)


def _files(copy: Path, tests: str) -> list[str]:
    """Return the files of tests in a folder, or the one that is named."""
    place = copy / tests
    found = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
    return [str(path.relative_to(copy)) for path in found]


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def measure(copy: Path, environment: dict[str, str], package: str, tests: Sequence[str]) -> Reach:
    """Run tests once, and note what they run.

    Args:
        copy: The root of the copy of the project in which they run.
        environment: With which imports come from the copy.
        package: The folder of the sources, from the root.
        tests: Folders or files of tests, from the root.
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
        [*command, "-m", "pytest", *_OPTIONS, *tests],
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
