"""No document tells users to install a stranger's package, and the installed versions are the locked ones."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import audit
import lock
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.rooms import ROOT
from tests.house.test_sources import committed

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OTHERS_NAME = "gcspy"  # on the public index, another project

# The arguments of "pip install", up to the end of the command.
COMMAND = re.compile(
    r"\bpip3? install\s+((?:'[^'\n]+'|[\w./=<>,\[\]~!@:-]+)(?:[ \t]+(?:'[^'\n]+'|-[\w-]+|[\w./\[\]-]+[\]=.][\w.,=-]*))*)"
)


def named(text: str) -> list[str]:
    """Return the installations that a text recommends: names, paths and options."""
    words = [word for found in COMMAND.finditer(text) for word in found[1].split()]
    return [word.strip("'\"`,.;:)") or "." for word in words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("install it: pip install 'gcspy[gui]' and", ["gcspy[gui]"]),
        ("`pip install gcspy`", ["gcspy"]),
        ("pip install '.[fast]'", ["[fast]"]),
        ("pip install -r requirements.txt", ["-r", "requirements.txt"]),
    ],
)
def test_what_a_text_tells_to_install_is_found(text: str, words: list[str]) -> None:
    assert named(text)[: len(words)] == words


def test_the_project_does_not_have_a_name_that_is_taken() -> None:
    assert canonicalize_name(PROJECT["name"]) != OTHERS_NAME
    assert set(PROJECT["scripts"]) == {"gcspy"}


def test_nothing_tells_people_to_install_a_name_that_is_not_ours() -> None:
    texts = [
        path
        for path in committed()
        if path.suffix in {".py", ".md", ".toml", ".txt", ".yml", ""} and path != Path(__file__)
    ]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for path in texts
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        for word in named(line)
        if re.match(r"gcspy(\[|==|>|$)", word, re.IGNORECASE)
    ]
    assert len(texts) > 500
    assert wrong == []


def test_extras_name_the_project_itself_and_no_other() -> None:
    own = [
        requirement.name
        for extra in PROJECT["optional-dependencies"].values()
        for requirement in map(Requirement, extra)
        if requirement.name.startswith("gcspy")
    ]
    assert own == [PROJECT["name"]]


def test_the_lock_names_each_pin_and_nothing_else() -> None:
    pins = {line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    locked = [
        match["pin"]
        for line in (ROOT / "constraints.lock").read_text().splitlines()
        if (match := lock.LINE.fullmatch(line))
    ]
    assert {canonicalize_name(pin.partition("==")[0]) for pin in locked} == {
        canonicalize_name(pin.partition("==")[0]) for pin in pins
    }
    assert len(locked) == len(pins) == len(lock.Lock.read(ROOT / "constraints.lock").hashes)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "One_Name-1.2-py3-none-any.whl").write_bytes(b"one")
    (folder / "two-2.0.tar.gz").write_bytes(b"two")
    return folder


def test_the_same_files_pass_and_a_changed_one_does_not(tmp_path: Path, files: Path) -> None:
    path = tmp_path / "constraints.lock"
    lock.write(path, files, ["one-name==1.2", "two==2.0"])
    known = lock.Lock.read(path)
    assert known.platform == lock.this_platform()
    assert known.check(files) == (2, [])
    (files / "one_name-1.2-cp311-cp311-linux_x86_64.whl").write_bytes(b"built elsewhere")
    assert known.check(files) == (2, ["one_name-1.2-cp311-cp311-linux_x86_64.whl"])
    (files / "two-2.0.tar.gz").write_bytes(b"tw0")
    with pytest.raises(lock.LockError, match=r"two-2\.0\.tar\.gz is not the file that was locked"):
        known.check(files)


def test_a_file_of_no_pin_is_not_locked(tmp_path: Path, files: Path) -> None:
    with pytest.raises(lock.LockError, match="belongs to no pin"):
        lock.write(tmp_path / "constraints.lock", files, ["one-name==1.2"])


@pytest.mark.parametrize(
    "text", ["", "pins\n", "# files, on Linux: their names\none==1 sha256:12\n"]
)
def test_a_damaged_lock_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "constraints.lock"
    path.write_text(text)
    with pytest.raises(lock.LockError, match=r"constraints\.lock"):
        lock.Lock.read(path)


KNOWN = {"name": "one", "version": "1", "vulns": []}
BAD = {"name": "two", "version": "2", "vulns": [{"id": "ADVISORY-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "three", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        ({"a": [KNOWN], "b": []}, audit.CLEAN, "1 packages looked up, 0 advisories"),
        ({"a": [KNOWN, BAD], "b": [SKIPPED]}, audit.VULNERABLE, "ADVISORY-1: two 2; fixed in 3"),
        ({"a": [KNOWN], "b": [SKIPPED]}, audit.UNKNOWN, "no source knows three"),
        (
            {"a": [SKIPPED], "b": []},
            audit.UNKNOWN,
            "no advisory source can be reached (tried a, b)",
        ),
        ({"a": [], "b": []}, audit.UNKNOWN, "nothing is known"),
    ],
)
def test_an_audit_says_what_it_could_not_ask(
    answers: dict[str, list[dict[str, object]]],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert audit.report(answers) == code
    assert said in capsys.readouterr().out
