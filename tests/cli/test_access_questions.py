"""Accesses of a trace as tables, files and a plot, and in a played session; all say the same."""

from __future__ import annotations

import csv
import json
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from gcspy_drivers.simulator.driver import SimulationOptions, SimulatorSession
from gcspy_drivers.traced import TracedOptions, TracedSession, TraceQueryService
from gcspy_drivers.traced.kinds import ACCESSES, OBJECTS
from gcspy_objects.access.recorder import access_history
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import CommandError

from gcspy.cli import gcspy
from gcspy_client.model.panels.chart import chart_of


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("accesses") / "made.gctrace"
    options = SimulationOptions(
        collector="semispace", program="queue", trace=str(path), heap_bytes=48 * 1024, steps=200
    )
    session = SimulatorSession(options)
    session.run(threading.Event())
    session.server.close()
    return path


def run(*words: str | Path) -> str:
    done = CliRunner().invoke(gcspy, ["objects", *map(str, words)], catch_exceptions=False)
    assert not done.exit_code, done.output
    return done.stdout


def test_vectors_are_the_same_in_csv_and_parquet(trace: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run("accessed", trace, "--vectors", tmp_path / "v.csv", "--json")
    run("accessed", trace, "--vectors", tmp_path / "v.parquet", "--json")
    with (tmp_path / "v.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "v.parquet").to_pylist()
    assert len(table) == len(rows) > 100
    for one, row in zip(table, rows, strict=True):
        assert [int(when) for when in row["accessed"].split()] == one["accessed"]
        assert (row["site"], row["type"]) == (one["site"], one["type"])
        assert int(row["address"], 16) == one["address"]
        assert [int(row[name]) for name in ("born", "died", "size")] == [
            one[name] for name in ("born", "died", "size")
        ]
    with open_trace(trace) as opened, RebuiltHeap(opened) as heap:
        history = access_history(heap)
    assert sum(len(one["accessed"]) for one in table) == len(history.accessed_in)


def test_a_table_is_the_same_in_json_and_parquet(trace: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for words in (("accessed", trace, "--each-gc"), ("idle", trace, "--kind", "arrival")):
        path = tmp_path / f"{words[0]}.parquet"
        said = json.loads(run(*words, "--parquet", path, "--json"))
        assert parquet.read_table(path).to_pylist() == said["rows"]
        assert said["rows"]


def test_the_plot_of_intervals_is_drawn(trace: Path, tmp_path: Path) -> None:
    pytest.importorskip("PySide6")
    run("accessed", trace, "--plot", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_session_finds_idle_objects_and_draws_each_interval(trace: Path) -> None:
    with open_trace(trace) as opened, RebuiltHeap(opened) as heap:
        history = access_history(heap)
        session = TracedSession(heap, TracedOptions())
        session.run()
        service = TraceQueryService(session)
        space = session.server.spaces[0].schema.name
        last = len(session.events)

        def ask(kind: str, text: str) -> list[dict[str, object]]:
            table = service.tell(
                kind, text, 100_000, number=last, space=space, tile=None, extent=None
            )
            assert table is not None
            names = [one.name for one in table.columns]
            return [dict(zip(names, row, strict=True)) for row in table.rows]

        assert "Idle" not in ask(OBJECTS, "")[0]
        found = ask(OBJECTS, "idle:1..")
        alive = history.alive
        assert len(found) == int((alive & (history.idle >= 1)).sum()) > 0
        by_address = dict(
            zip(history.address[alive].tolist(), history.idle[alive].tolist(), strict=True)
        )
        for one in found:
            assert one["Idle"] == by_address[int(str(one["Address"]), 16)]
        assert len(ask(OBJECTS, "accesses:0..0")) == int((alive & (history.accesses == 0)).sum())
        table = service.tell(ACCESSES, "", 1024, number=1, space=space, tile=None, extent=None)
        assert table is not None
        chart = chart_of(ACCESSES, table)
        assert chart is not None
        assert [one.name for one in chart.curves] == ["allocated", "accessed", "collected"]
        assert chart.curves[1].at(1.0) == (float(str(table.rows[1][4])),) * 2
        service.close()


def test_idle_objects_of_a_trace_without_accesses_are_refused() -> None:
    from tests.objects.samples import path_of

    with open_trace(path_of("list")) as opened, RebuiltHeap(opened) as heap:
        session = TracedSession(heap, TracedOptions())
        session.run()
        service = TraceQueryService(session)
        with pytest.raises(CommandError, match="no records of accesses"):
            service.tell(OBJECTS, "idle:1", 5, number=1, space="Eden", tile=None, extent=None)
        service.close()
