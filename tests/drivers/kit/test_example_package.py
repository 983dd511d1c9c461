"""The example of a driver package: installed beside GCspy, it is found, and shows the contents of the database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.rooms import ROOT

PACKAGE = ROOT / "docs" / "examples" / "sqlite_driver"

_TARGET = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("CREATE TABLE large (content BLOB)")
database.execute("CREATE TABLE small (content BLOB)")
database.execute("CREATE TABLE gone (content BLOB)")
database.executemany("INSERT INTO large VALUES (?)", [(b"x" * 500,)] * 2000)
database.executemany("INSERT INTO small VALUES (?)", [(b"y" * 100,)] * 100)
database.executemany("INSERT INTO gone VALUES (?)", [(b"z" * 500,)] * 500)
database.commit()
print("ready", flush=True)
for line in sys.stdin:
    database.execute("DROP TABLE gone")
    database.commit()
    print("dropped", flush=True)
"""

_WATCHER = """
import json, sys
from gcspy_server.api import AttachOptions, find_drivers, load_driver

pid = int(sys.argv[1])
kind = load_driver("sqlite")
assert kind.recognise(pid).supported, kind.recognise(pid)
driver = kind.attach(pid, AttachOptions())
server = driver.describe().server()
driver.open(server)
server.add_observer(lambda event: None)
for line in sys.stdin:
    driver.tick()
    told = {"name": server.name}
    for space in server.spaces:
        told[space.name] = {stream.name: stream.data.tolist() for stream in space.streams}
        told[space.name]["names"] = list(getattr(space.names, "names", ()))
        told[space.name]["keys"] = getattr(space.names, "keys", space.names).tolist() if space.name == "Tables" else []
    print(json.dumps(told), flush=True)
driver.close()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package installed, as any user would install it beside GCspy."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([*command, str(PACKAGE)], check=True)
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a program that has a database open."""
    path = tmp_path / "some.db"
    with subprocess.Popen(
        [sys.executable, "-c", _TARGET, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as target:
        assert target.stdout is not None
        assert target.stdout.readline() == "ready\n"
        yield target, path
        target.kill()


def test_the_package_is_at_most_60_lines_with_all_that_it_needs() -> None:
    files = [
        path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert {path.name for path in files} == {"gcspy_sqlite.py", "pyproject.toml"}
    lines = [line for path in files for line in path.read_text().splitlines()]
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert not any(";" in line for line in lines), "one statement a line"


def test_what_it_shows_is_what_is_in_the_database(
    installed: Path, database: tuple[subprocess.Popen[str], Path]
) -> None:
    target, path = database
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", _WATCHER, str(target.pid)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as watcher:
        assert watcher.stdin is not None
        assert watcher.stdout is not None
        assert target.stdin is not None
        assert target.stdout is not None
        watcher.stdin.write("\n")
        watcher.stdin.flush()
        first = json.loads(watcher.stdout.readline())
        tables, pages = first["Tables"], first["Pages"]
        assert f"process {target.pid}" in first["name"]
        assert tables["names"] == ["free pages", "sqlite_schema", "large", "small", "gone"]
        payload = dict(zip(tables["names"], tables["Payload"], strict=True))
        assert 2000 * 500 <= payload["large"] <= 2000 * 510
        assert 100 * 100 <= payload["small"] <= 100 * 110
        assert len(pages["Kind"]) * 4096 == path.stat().st_size
        of_large = [
            size
            for size, table in zip(pages["Payload"], pages["Table"], strict=True)
            if tables["names"][table] == "large"
        ]
        assert sum(of_large) == payload["large"]
        assert 0 not in pages["Kind"], "no page is free"
        target.stdin.write("drop\n")
        target.stdin.flush()
        assert target.stdout.readline() == "dropped\n"
        watcher.stdin.write("\n")
        watcher.stdin.flush()
        second = json.loads(watcher.stdout.readline())
        assert second["Tables"]["names"] == ["free pages", "sqlite_schema", "large", "small"]
        assert second["Tables"]["keys"] == tables["keys"][:4], "who stays has the key it had"
        assert second["Pages"]["Kind"].count(0) > 500 * 500 // 4096, "its pages are free now"
        watcher.stdin.close()
        assert watcher.wait() == 0


def test_commands_use_the_drivers_that_are_named(
    installed: Path, database: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    target, _ = database
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(installed), *sys.path]),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }

    def gcspy(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gcspy", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    listed = gcspy("ps", "--json", "some.db")
    (row,) = (row for row in json.loads(listed.stdout) if row["pid"] == target.pid)
    assert (row["driver"], row["drivers"]) == ("cpython", ["cpython", "sqlite", "malloc"])
    both = ("--driver", "sqlite", "--driver", "cpython")
    tailed = gcspy("tail", str(target.pid), *both, "--events", "2", "--json")
    assert tailed.returncode == 0, tailed.stderr
    lines = [json.loads(line) for line in tailed.stdout.splitlines()]
    spaces = {space["name"] for line in lines for space in line.get("spaces", ())}
    assert {"Pages", "Tables", "pymalloc arenas"} <= spaces, tailed.stdout[:500]
    recorded = gcspy(
        "record", str(target.pid), "-o", str(tmp_path / "r.gcspy"), *both, "--events", "1"
    )
    assert recorded.returncode == 0, recorded.stderr
    info = gcspy("info", str(tmp_path / "r.gcspy"))
    assert "Pages" in info.stdout
    assert "pymalloc arenas" in info.stdout
    asked = gcspy("types", str(target.pid), "--driver", "sqlite")
    assert asked.returncode == 5
    assert "its driver cannot report types" in asked.stderr
    twice = gcspy("tail", str(target.pid), "--driver", "sqlite", "--driver", "sqlite")
    assert twice.returncode == 2
    assert "driver sqlite is named twice" in twice.stderr


def test_it_is_watched_together_with_cpython_in_one_session(
    installed: Path, database: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    target, _ = database
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), *sys.path])}
    program = (
        "import json, sys\n"
        "from gcspy.connection.driver_bench import recognise\n"
        "from gcspy.connection.target import attach_group\n"
        "from gcspy_server.api import AttachOptions\n"
        "pid = int(sys.argv[1])\n"
        "found = [name for name, _ in recognise(pid)]\n"
        "group = attach_group(pid, AttachOptions(), ('cpython', 'sqlite'))\n"
        "server = group.describe().server(budget=1000)\n"
        "events = []\n"
        "group.open(server)\n"
        "server.add_observer(events.append)\n"
        "group.tick()\n"
        "spaces = {space.name: space.schema.driver for space in server.spaces}\n"
        "gathered = [s.name for s in server.spaces if any(one.gathered for one in s.streams)]\n"
        "print(json.dumps([found, spaces, gathered, len(events), server.name]))\n"
        "group.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(target.pid)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, spaces, gathered, events, name = json.loads(done.stdout)
    assert found == ["cpython", "sqlite", "malloc"], (
        "the runtime is more specific than a library in it"
    )
    assert events == 1, "one clock"
    assert spaces["pymalloc arenas"] == "cpython"
    assert spaces["Pages"] == "sqlite"
    assert {"pymalloc arenas", "Pages", "Tables"} <= set(gathered)
    assert "with sqlite" in name
