"""Rules about the text of the sources that no tool of ours checks."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

from tests.house.rooms import PACKAGES, ROOT

FOLDERS = [
    *PACKAGES.values(),
    ROOT / "tests",
    ROOT / "benchmarks",
    ROOT / "screenshots",
    ROOT / ".ci",
    ROOT / "stubs",
]
SOURCES = sorted(
    path for folder in FOLDERS for path in [*folder.rglob("*.py"), *folder.rglob("*.pyi")]
)
REASONED = re.compile(r"#\s*noqa: [A-Z0-9, ]+\s+(#|--?|—|\()\s*\w+")


def comments(path: Path) -> list[tuple[int, str]]:
    """Return the comments of a file that may silence something; reading one word by word takes long, and few may."""
    text = path.read_bytes()
    if b"noqa" not in text and not re.search(rb"type:\s*ignore", text):
        return []
    tokens = list(tokenize.tokenize(io.BytesIO(text).readline))
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


def silenced(path: Path) -> list[str]:
    """Return the comments of a file that silence a type, or a rule without its name and its reason."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {comment}"
        for line, comment in comments(path)
        if re.match(r"#\s*type:\s*ignore", comment)
        or ("noqa" in comment and not REASONED.search(comment))
    ]


def test_nothing_is_silenced_without_a_reason() -> None:
    assert [each for path in SOURCES for each in silenced(path)] == []


def test_modules_are_named_after_something() -> None:
    assert [
        path
        for path in SOURCES
        if path.stem in {"utils", "util", "helpers", "helper", "common", "misc"}
    ] == []


def test_a_silence_without_reason_is_noticed() -> None:
    assert REASONED.search("# noqa: BLE001  # a driver may raise anything")
    assert not REASONED.search("# noqa: BLE001")
    assert not REASONED.search("# noqa")


def committed() -> list[Path]:
    """Return the files that are in the repository; outside of one, nothing can be said."""
    if not (ROOT / ".git").exists():
        return []
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


# In two parts each, so that this file may be committed.
STRANGE = re.compile(
    b"|".join([rb"(?<![\w.])/" + rb"(root|work)/", rb"py" + rb"pi\.org", rb"python" + rb"hosted"])
)


def test_no_file_names_a_path_of_somebody_s_machine_or_a_package_index() -> None:
    found = {path: STRANGE.search(path.read_bytes()) for path in committed()}
    assert [
        f"{path.relative_to(ROOT)}: {match.group()!r} at byte {match.start()}"
        for path, match in found.items()
        if match
    ] == []


def test_a_strange_path_is_noticed() -> None:
    assert STRANGE.search(b"see /" + b"root/x")
    assert not STRANGE.search(b"https://example.org/a/" + b"work/x and src/" + b"root/y")


def crowded(names: list[str], most: int = 20) -> dict[str, int]:
    """Return how many modules a folder has, for those that have more than a reader takes in at a glance."""
    count = Counter(name.rpartition("/")[0] for name in names)
    return {folder: modules for folder, modules in sorted(count.items()) if modules > most}


def test_no_folder_holds_more_than_twenty_modules() -> None:
    names = [
        path.relative_to(ROOT).as_posix()
        for path in committed()
        if path.suffix == ".py" and not path.is_relative_to(ROOT / "tests")
    ]
    assert crowded(names) == {}


def test_a_crowded_folder_is_noticed() -> None:
    assert crowded([f"room/m{number}.py" for number in range(21)]) == {"room": 21}
    assert crowded([f"room/m{number}.py" for number in range(20)]) == {}
