"""Stacks that are walked only as far as they are new are those of a whole walk: a build of the library walks each one twice, and traps."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gcspy.tracer import traced_run
from gcspy.tracer.traced_run import TracedRun, TraceSettings

ROOT = Path(__file__).parents[2]
SQL = (
    "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<20000) "
    "insert into t select x, hex(x*7919) from c; create index i on t(b); select count(*) from t;"
)
CXX = '#include <map>\n#include <string>\nstd::map<int, std::string> m;\nint main() { m[1] = "x"; return 0; }\n'


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that is loaded into programs, which checks itself."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    library = tmp_path_factory.mktemp("checked") / "preloaded.so"
    subprocess.run(
        [compiler, "-std=c11", "-O2", "-fPIC", "-shared", "-fwrapv", "-fvisibility=hidden", "-DCHECK_WALKS", f"-I{ROOT / 'gcspy_compiled'}",
         *map(str, sorted((ROOT / "gcspy/tracer/preloaded").glob("*.c"))), "-o", str(library)],
        check=True,
    )  # fmt: skip
    return library


def command_of(name: str, folder: Path) -> list[str]:
    """Return the command of a program that allocates at many depths of its stack."""
    if name == "python":
        return [sys.executable, "-c", "import json; [json.dumps([1, {'b': [i]}] * 9) for i in range(2000)]"]  # fmt: skip
    if name == "cc1plus":
        source = folder / "source.cpp"
        source.write_text(CXX)
        asked = ["g++", "-print-prog-name=cc1plus"], ["g++", "-print-multiarch"]
        if shutil.which("g++") is None:
            pytest.skip("there is no g++")
        found = [subprocess.run(one, check=True, capture_output=True, text=True) for one in asked]
        passes, place = (one.stdout.strip() for one in found)
        return [passes, "-quiet", "-imultiarch", place, "-O1", "-std=c++17", "-D_GNU_SOURCE", str(source), "-o", "/dev/null"]  # fmt: skip
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    if name == "sqlite3":
        return [name, ":memory:", SQL]
    return [name, "-e", 'my %h; $h{$_} = "x$_" for 1..60000; print length join ",", sort keys %h']


@pytest.mark.soak
@pytest.mark.parametrize("name", ["sqlite3", "perl", "python", "cc1plus"])
def test_the_frames_that_were_there_before_are_those_of_a_whole_walk(
    checked: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced_run, "preloaded_library", lambda: checked)
    settings = TraceSettings(output=tmp_path / "trace", stacks="full")
    with TracedRun(command_of(name, tmp_path), settings) as traced:
        assert traced.follow(lambda _definitions: b"") == 0
    counts = traced.summaries[0].counts
    assert counts.sites > 100
    assert counts.events > 10_000
