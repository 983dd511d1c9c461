"""Structure and help texts of a revision beside today's: ``python -m tests.house.structure [REVISION]``.

Prints import circles (imports within functions and under TYPE_CHECKING count), the largest folders, and
help texts that have changed. Reads the revision from git; runs none of its code.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tests.house.rooms import ROOT
from tests.house.test_circles import circles, targets

__all__ = ["circles_of", "folders_of", "helps_of", "sources_of"]

BEFORE = "24a5b16c"
"""The revision before the driver kit and the folders by subject."""

_OTHERS = ("tests", "docs", "benchmarks", "screenshots", "stubs")
_SHOWN = 20


def sources_of(revision: str) -> dict[PurePosixPath, str]:
    """Return the product's modules of a revision, by their paths; an empty one: the working tree."""
    if not revision:
        listed = subprocess.run(
            ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        found = {PurePosixPath(name): (ROOT / name) for name in listed}
        return {
            path: file.read_text()
            for path, file in found.items()
            if _package_of(path) is not None and file.exists()
        }
    packed = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {
            path: file.read().decode()
            for member in archive
            if member.name.endswith(".py")
            and _package_of(path := PurePosixPath(member.name)) is not None
            and (file := archive.extractfile(member)) is not None
        }


def _package_of(path: PurePosixPath) -> int | None:
    """Return which part of a path is its package; None: it is none of the product's."""
    if path.parts[0] in _OTHERS:
        return None
    places = (at for at, part in enumerate(path.parts[:-1]) if part.startswith("gcspy"))
    return next(places, None)


def circles_of(sources: Mapping[PurePosixPath, str]) -> list[frozenset[str]]:
    """Return the modules of each import circle, the largest first."""
    trees = {}
    for path, source in sources.items():
        parts = path.with_suffix("").parts[_package_of(path) :]
        trees[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(source)
    names = set(trees)
    graph = {name: targets(tree, names, types=True) - {name} for name, tree in trees.items()}
    return sorted(circles(graph), key=len, reverse=True)


def folders_of(sources: Mapping[PurePosixPath, str]) -> list[tuple[str, int]]:
    """Return how many modules each folder has, the largest first; `__init__` is none."""
    counts = Counter(str(path.parent) for path in sources if path.stem != "__init__")
    return counts.most_common()


def helps_of(sources: Mapping[PurePosixPath, str]) -> dict[str, str]:
    """Return the help of each option, by command and option, and the first sentence of each command's."""
    found = {}
    for path, source in sources.items():
        if path.parts[0] == "gcspy" and ("commands" in path.parts or path.stem == "options"):
            for name, text in _helps_in(ast.parse(source)):
                found[f"{path.stem} {name}".strip()] = text
    return found


def _helps_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            yield "", (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "option":
            names = [one.value for one in node.args if isinstance(one, ast.Constant)]
            texts = [one.value for one in node.keywords if one.arg == "help"]
            if names and texts and isinstance(texts[0], ast.Constant):
                yield str(names[0]), str(texts[0].value)


def main() -> int:
    """Print both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("revision", nargs="?", default=BEFORE, metavar="REVISION")
    options = parser.parse_args()
    try:
        before, after = sources_of(options.revision), sources_of("")
    except subprocess.CalledProcessError as error:
        print(f"git has no revision {options.revision}: {error.stderr.decode().strip()}")
        return 1
    print(f"| | {options.revision} | today |\n|---|--:|--:|")
    both = [(circles_of(one), folders_of(one), len(one)) for one in (before, after)]
    print(f"| modules | {both[0][2]} | {both[1][2]} |")
    print(f"| import circles | {len(both[0][0])} | {len(both[1][0])} |")
    largest = [max((len(one) for one in found), default=0) for found, _, _ in both]
    print(f"| modules in the largest circle | {largest[0]} | {largest[1]} |")
    named = [f"{folders[0][1]} (`{folders[0][0]}`)" for _, folders, _ in both]
    print(f"| modules in the largest folder | {named[0]} | {named[1]} |\n")
    old, new = helps_of(before), helps_of(after)
    changed = [name for name in old if name in new and old[name] != new[name]]
    print(f"{len(changed)} help texts have changed; the first {_SHOWN}:\n")
    print(f"| of | {options.revision} | today |\n|---|---|---|")
    for name in changed[:_SHOWN]:
        print(f"| {name} | {old[name]} | {new[name]} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
