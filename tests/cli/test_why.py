"""`gcspy why`: of a process that leaks, of a recording of it, and of what is neither."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcspy.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.objects.samples import path_of

LEAK = """
import time
class Order:
    def __init__(self, number): self.number, self.note = number, "note %d" % number * 20
AUDIT = []
while True:
    AUDIT.extend([Order(n) for n in range(200)])
    if len(AUDIT) == 4000: print("begun", flush=True)
    time.sleep(0.02)
"""


MALLOC = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
print("begun", flush=True)
while True:
    for _ in range(20):
        libc.memset(libc.malloc(20_000), 1, 20_000)
    time.sleep(0.02)
"""
"""Memory that is no object's."""


@pytest.fixture(name="leaking")
def _leaking(request: pytest.FixtureRequest) -> Iterator[int]:
    source = getattr(request, "param", LEAK)
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        try:
            yield child.pid
        finally:
            child.kill()


@pytest.mark.usefixtures("compiled")
@pytest.mark.timeout(300)
def test_the_holder_of_what_grew_is_named(leaking: int, gcspy: Run) -> None:
    done = gcspy("why", str(leaking), "--over", "2", "--json", "--hold")
    assert done.returncode == ExitCode.OK, done.stderr
    found = json.loads(done.stdout)
    assert found["pid"] == leaking
    rows, rest = found["memory"]["rows"], found["memory"]["rest"]
    assert sum(row["bytes"] for row in rows) + rest["bytes"] == found["resident"]
    assert "tracemalloc is off" in found["allocated"]["note"]
    growth = found["growth"]
    assert growth["allocated"]["rows"] == []
    assert growth["seconds"] >= 2
    assert growth["holders"]["rows"][0]["holder"] == "__main__.AUDIT"
    orders = next(row for row in growth["memory"]["rows"] if row["what"] == "Order")
    assert orders["came"] > 0 == orders["went"]
    assert "Held by __main__.AUDIT" in growth["sentence"]


@pytest.mark.usefixtures("compiled")
@pytest.mark.timeout(300)
def test_the_line_that_allocated_what_grew_is_named_if_tracemalloc_is_on(gcspy: Run) -> None:
    command = [sys.executable, "-X", "tracemalloc=5", "-c", LEAK]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        done = gcspy("why", str(child.pid), "--over", "0")
        child.kill()
    assert done.returncode == ExitCode.OK, done.stderr
    table = done.stdout.split("Allocation sites\n")[1].splitlines()
    line = LEAK.split("AUDIT.extend")[0].count("\n") + 1
    assert re.match(r"What +Allocated at +(Called from +)?Objects +Of +Bytes", table[0])
    assert [row for row in table if re.match(rf"Order +<string>:{line}\b", row)]
    assert [row for row in table if row.startswith("held by __main__.AUDIT")]


@pytest.mark.usefixtures("compiled")
@pytest.mark.timeout(300)
def test_that_no_site_is_known_is_said_once(leaking: int, gcspy: Run) -> None:
    done = gcspy("why", str(leaking), "--over", "1")
    assert done.returncode == ExitCode.OK, done.stderr
    assert "Held by __main__.AUDIT" in done.stdout
    assert done.stdout.count("Allocation sites are not known: tracemalloc is off") == 1


def test_what_grew_in_an_object_trace_has_its_allocation_sites(gcspy: Run) -> None:
    done = gcspy("why", str(path_of("promote")), "--json", "--top", "1000")
    assert done.returncode == ExitCode.OK, done.stderr
    rows = json.loads(done.stdout)["rows"]
    sites = {row["site_name"] for row in rows if row["type_name"] == "Promote$Tmp"}
    assert any(site.startswith("Promote.build(int)") for site in sites), rows[:5]
    assert sum(row["left_bytes"] for row in rows) > 0
    assert [row["grew_bytes"] for row in rows] == sorted(
        (row["grew_bytes"] for row in rows), reverse=True
    )


@pytest.mark.timeout(300)
def test_what_is_left_of_an_object_trace_with_pointers_has_its_holders(gcspy: Run) -> None:
    trace = str(path_of("pointers"))
    done = gcspy("why", trace, "--json", "--top", "1000")
    assert done.returncode == ExitCode.OK, done.stderr
    found = json.loads(done.stdout)
    rows = found["rows"]
    assert any("allocated since, and are not included" in note for note in found["notes"])
    times_seen = Counter(row["type_name"] for row in rows)
    of_one_site = [row for row in rows if times_seen[row["type_name"]] == 1 and row["held_by"]]
    compared = 0
    for row in sorted(of_one_site, key=lambda row: -row["held_objects"])[:2]:
        asked = gcspy("holders", trace, "--type", row["type_name"], "--json", "--top", "1")
        first = json.loads(asked.stdout)["rows"][0]
        assert (row["held_by"], row["held_objects"]) == (first["holder"], first["objects"])
        assert row["held_objects"] <= row["left_objects"]
        compared += 1
    assert compared == 2
    assert gcspy("why", str(path_of("promote")), "--json").stdout.count("held_by") == 0


@pytest.mark.timeout(300)
def test_a_recording_says_by_how_much_it_grew(leaking: int, gcspy: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "leak.gcspy")
    done = gcspy("record", str(leaking), "-o", path, "--events", "30", "--clock", "20")
    assert done.returncode == ExitCode.OK, done.stderr
    found = json.loads(gcspy("why", path, "--json").stdout)
    assert found["resident"]["now"] > found["resident"]["before"] > 1_000_000
    assert found["types"] is None
    text = gcspy("why", path)
    assert text.returncode == ExitCode.OK
    assert "Types were not recorded" in text.stdout


@pytest.mark.usefixtures("compiled")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("leaking", [MALLOC], indirect=True)
def test_it_says_of_how_much_growth_the_owner_is_not_known(leaking: int, gcspy: Run) -> None:
    done = gcspy("why", str(leaking), "--over", "1", "--json", "--hold", "--top", "1000")
    assert done.returncode == ExitCode.OK, done.stderr
    growth = json.loads(done.stdout)["growth"]
    assert growth["owner_not_known_grew"] > 1_000_000
    assert growth["owner_not_known_grew"] == sum(
        row["grew"]
        for row in growth["memory"]["rows"]
        if "owner not known" in row["what"] or "too fast to tell" in row["what"]
    )
    assert re.search(r"The owner of \d+ % of it is not known\.$", growth["sentence"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("leaking", [MALLOC], indirect=True)
def test_of_a_recording_it_says_so_too(leaking: int, gcspy: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "leak.gcspy")
    words = ("-o", path, "--level", "3", "--events", "30", "--clock", "20")
    done = gcspy("record", str(leaking), *words)
    assert done.returncode == ExitCode.OK, done.stderr
    found = json.loads(gcspy("why", path, "--json").stdout)
    assert found["types"]["from"] < found["types"]["to"]
    assert re.search(r"The owner of \d+ % of it is not known\.$", found["sentence"])


def test_what_is_neither_a_process_nor_a_recording_is_refused(here: Run) -> None:
    for words in (["nothing"], ["1", "2"]):
        done = here("why", *words)
        assert done.returncode == ExitCode.USAGE
        assert "is neither a process nor a recording" in done.stderr


@pytest.mark.parametrize("command", ["why", "holders", "dominators"])
def test_where_no_session_is_that_is_said(command: str, here: Run) -> None:
    done = here(command, "unix:/nowhere/a.sock")
    assert done.returncode == ExitCode.NO_CONNECTION
    assert "cannot connect to unix:/nowhere/a.sock" in done.stderr
    done = here(command, "unix:/nowhere/a.sock", "--driver", "cpython")
    assert done.returncode == ExitCode.USAGE
    assert "a session has its own drivers" in done.stderr
