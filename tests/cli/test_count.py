"""`gcspy count`: a program runs as ever, and its allocation sites are counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Run
from tests.drivers.targets import find_python

PROGRAM = """
import sys, threading
class Node:
    def __init__(self, value):
        self.items = [value, {value: value}]
def made(count):
    found = []
    for number in range(count):
        try:
            if number % 3 == 0:
                raise KeyError(number)
            found.append(Node(number))
        except KeyError as error:
            found.append((number, error))
    return found
def flat(rows):
    out = []
    if rows:
        for row in rows:
            out.append(row)
    return out
threads = [threading.Thread(target=made, args=(300,)) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print(len(flat(made(30))), sys.argv[1:])
sys.exit(7)
"""


@pytest.fixture(name="program")
def _program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def counts(report: dict[str, Any]) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    for site in report["sites"]:
        key = (site["line"], site["what"])
        found[key] = found.get(key, 0) + site["count"]
    return found


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_counts_are_exact_with_threads_and_exceptions(
    gcspy: Run, program: Path, version: str
) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on PATH or in ~/.pyenv/versions")
    done = gcspy("count", "--json", "--python", python, program, "one", "--top")
    assert done.returncode == 7
    assert done.stdout == "30 ['one', '--top']\n"
    report = json.loads(done.stderr)
    assert report["exit_code"] == 7
    assert report["not_countable"] == 0
    found = counts(report)
    calls = 4 * 300 + 30
    raised = calls // 3
    assert found[5, "list"] == found[5, "dict"] == calls - raised
    assert found[14, "tuple"] == raised
    assert found[11, "call"] == raised  # KeyError(number)
    assert found[7, "list"] == 5
    assert found[20, "call"] == 30  # in a block that ends with its loop
    assert report["increments"] < sum(found.values())


def test_the_table_has_the_largest_counts_first(gcspy: Run, program: Path) -> None:
    done = gcspy("count", "--sites", "definite", "--top", "3", program)
    rows = done.stderr.splitlines()
    assert rows[0].split() == ["Site", "Executions", "Makes", "Allocates", "Function"]
    assert rows[1].split()[1:] == ["820", "dict", "always", "Node.__init__"]
    assert rows[2].split()[1:] == ["820", "list", "always", "Node.__init__"]
    assert rows[3].split()[1:] == ["410", "tuple", "always", "made"]
    assert rows[4].startswith("(")
    assert "increments" in rows[5]


def test_the_graph_of_a_function_is_drawn(gcspy: Run, program: Path, tmp_path: Path) -> None:
    picture = tmp_path / "made.svg"
    gcspy("count", "--graph", "made", "-o", picture, program)
    text = "".join(ET.parse(picture).getroot().itertext())
    assert "made: " in text
    assert "tuple, line 14: 410" in text
    missing = gcspy("count", "--graph", "nothing", "-o", picture, program)
    assert missing.returncode == 2
    assert "no function 'nothing' was loaded" in missing.stderr


def test_code_modules_and_libraries(gcspy: Run) -> None:
    done = gcspy("count", "--json", "-c", "import json; print(json.dumps([{}]))")
    files = {site["file"] for site in json.loads(done.stderr)["sites"]}
    assert files == {"<string>"}
    done = gcspy(
        "count", "--json", "--include", "json", "-c", "import json; print(json.dumps([{}]))"
    )
    report = json.loads(done.stderr)
    files = {site["file"] for site in report["sites"]}
    assert any("json/encoder.py" in file for file in files)
    assert not any("gcspy_counting" in file for file in files), "it counted itself"
    done = gcspy("count", "--json", "--include", "json.tool", "-m", "json.tool", "--help")
    assert done.returncode == 0
    assert any("tool.py" in site["file"] for site in json.loads(done.stderr)["sites"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-c", "import os; os._exit(3)"], 3, "without reporting its counts"),
        (["-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"], 3, "SIGKILL"),
        (["nothing.py"], 2, "no such file: nothing.py"),
        (["--python", "/bin/true", "-c", "1"], 2, "is not a Python interpreter"),
        (["--graph", "f", "-c", "1"], 2, "belong together"),
    ],
)
def test_what_cannot_be_counted_is_one_line(
    gcspy: Run, arguments: list[str], code: int, words: str
) -> None:
    done = gcspy("count", *arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_another_version_is_refused(gcspy: Run) -> None:
    python = find_python("3.9")
    if python is None:
        pytest.skip("no Python 3.9 on PATH or in ~/.pyenv/versions")
    done = gcspy("count", "--python", python, "-c", "1")
    assert done.returncode == 5
    assert "cpython 3.9" in done.stderr


def test_tracebacks_and_the_module_are_those_of_the_program(gcspy: Run, program: Path) -> None:
    program.write_text(
        "def inner(x):\n    y = [x]\n    return (\n        1 // 0\n    )\n"
        "import __main__\nassert __main__.inner is inner\ninner(1)\n"
    )
    done = gcspy("count", program)
    assert done.returncode == 1
    assert f'File "{program}", line 4, in inner' in done.stderr
    assert "gcspy_counting" not in done.stderr.split("ZeroDivisionError")[0].split("line 8")[1]
    assert sys.version_info >= (3, 11)
    assert "~~^^~~" in done.stderr
