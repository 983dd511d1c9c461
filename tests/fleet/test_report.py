"""The report on many recordings: planted growth, outliers and changes are found, and nothing else; a table is untrusted."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gcspy.cli import main
from gcspy.exit_codes import ExitCode
from gcspy.fleet.feature_table import write_parquet
from gcspy.fleet.features import Features
from gcspy.fleet.report import LEAST, MEASURES, report_of
from gcspy.fleet.stored_features import read_features

DEPLOYED = datetime(2026, 11, 25, 14, 30, tzinfo=UTC)
NANOS = int(DEPLOYED.timestamp()) * 10**9
MIB = 1 << 20


def night(count: int = 40, *, grown: int = 0) -> list[Features]:
    """Recordings of two programs, half of them before the deployment; later ones of ``web`` are larger."""
    numbers = np.random.default_rng(4)
    rows = []
    for number in range(count):
        later = number % 2 == 1
        name = "web" if number % 4 < 2 else "worker"
        rows.append(
            Features(
                file=f"{number}.gcspy",
                program=f"{name} (CPython 3.11.7, process {number})",
                started=NANOS + (1 if later else -1) * (number + 1) * 10**9,
                seconds=60.0,
                resident_last=100 * MIB,
                resident_most=int(numbers.normal(100, 2) * MIB)
                + (grown * MIB if later and name == "web" else 0),
                growth="steady",
                growth_per_minute=int(numbers.normal(0, 5000)),
                fragmentation=float(numbers.uniform(0.1, 0.2)),
            )
        )
    return rows


def stored(rows: list[Features], folder: Path) -> Path:
    path = folder / "fleet.parquet"
    write_parquet(rows, path)
    return path


def test_what_was_stored_is_read(tmp_path: Path) -> None:
    rows = [*night(6), Features("torn.gcspy", error="cut short")]
    rows[0] = replace(rows[0], type_names=("a", "b"), type_bytes=(2, 1), anomalies=("growing",))
    assert [asdict(row) for row in read_features(stored(rows, tmp_path))] == [
        asdict(row) for row in rows
    ]


def test_a_planted_outlier_and_a_planted_leak_are_found_and_nothing_else() -> None:
    rows = night()
    assert not report_of(rows, deployed=None).outliers
    rows[3] = replace(rows[3], fragmentation=0.9)
    rows[8] = replace(rows[8], growth="growing", growth_per_minute=MIB)
    report = report_of(rows, deployed=None)
    assert [(one.row.file, one.measure.column) for one in report.outliers] == [
        ("8.gcspy", "growth_per_minute"),
        ("3.gcspy", "fragmentation"),
    ]
    assert [row.file for row in report.growing] == ["8.gcspy"]
    values = np.array(
        [row.fragmentation for row in rows if row.program and "worker" in row.program]
    )
    median = np.median(values)
    expected = 0.6745 * (0.9 - median) / np.median(np.abs(values - median))
    assert report.outliers[1].score == pytest.approx(expected)


def test_equal_numbers_have_no_outlier_and_one_other_number_among_them_is_one() -> None:
    rows = [replace(row, fragmentation=0.5) for row in night(20)]
    assert not [
        one for one in report_of(rows, deployed=None).outliers if one.measure.unit == "share"
    ]
    rows[0] = replace(rows[0], fragmentation=0.6)
    (found,) = [
        one for one in report_of(rows, deployed=None).outliers if one.measure.unit == "share"
    ]
    assert found.row.file == "0.gcspy"


def test_a_program_with_few_recordings_has_no_outliers_and_is_named() -> None:
    rows = night(2 * LEAST - 2)
    rows[0] = replace(rows[0], resident_most=MIB << 20)
    report = report_of(rows, deployed=DEPLOYED)
    assert not [one for one in report.outliers if "worker" in str(one.row.program)]
    assert "worker" in report.too_few
    assert not report.changes


def test_a_deployment_that_changed_a_number_is_told_by_pairs_and_p() -> None:
    report = report_of(night(grown=30), deployed=DEPLOYED)
    found = {(one.program, one.measure.column): one for one in report.changes}
    change = found["web", "resident_most"]
    assert change.larger == 1.0
    assert change.p < 0.001
    assert found["worker", "resident_most"].p > 0.01
    for one in report.changes:
        pairs = [(x < y) + (x == y) / 2 for x in one.before for y in one.after]
        assert one.larger == pytest.approx(sum(pairs) / len(pairs))


def test_p_is_that_of_the_normal_approximation() -> None:
    rows = [
        replace(row, program="one", fragmentation=float(number), started=NANOS + number - 5)
        for number, row in enumerate(night(10))
    ]
    (change,) = [
        one for one in report_of(rows, deployed=DEPLOYED).changes if one.measure is MEASURES[2]
    ]
    assert change.larger == 1.0
    # U = 25 of 25 pairs, its deviation the root of 25 * 11 / 12, half a pair for continuity.
    assert change.p == pytest.approx(
        math.erfc((25 - 12.5 - 0.5) / math.sqrt(25 * 11 / 12) / 2**0.5)
    )


def test_the_command_prints_and_writes_a_page_in_which_texts_are_only_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = night(grown=30)
    rows[5] = replace(
        rows[5], file="<script>alert(1)</script>", growth="growing", growth_per_minute=MIB,
        type_names=("<b>Order</b>",), type_bytes=(7,), fragmentation=0.95,
    )  # fmt: skip
    rows.append(Features("torn.gcspy", error="cut short"))
    path, page = stored(rows, tmp_path), tmp_path / "report.html"
    words = ["fleet", "report", str(path), "--deployed", "2026-11-25T14:30"]
    assert main([*words, "-o", str(page)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "41 recordings of 2 programs" in out
    assert "1 cannot be read" in out
    assert "Before and after 2026-11-25 14:30 UTC" in out
    assert "in 100 % of pairs" in out
    html = page.read_text()
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert html.count("<svg") >= 2
    assert "http" not in html.replace("http-equiv", ""), "it asks nobody"
    assert main([*words, "--json"]) == ExitCode.OK
    told = json.loads(capsys.readouterr().out)
    assert (told["recordings"], len(told["unread"])) == (41, 1)
    assert told["growing"][0]["growth_per_minute"] == MIB


@pytest.mark.parametrize("what", ["absent", "text", "version", "kind", "column"])
def test_what_is_no_such_table_is_refused_in_one_line(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(night(6), tmp_path)
    table = parquet.read_table(str(path))
    if what == "absent":
        path.unlink()
    elif what == "text":
        path.write_text("not Parquet")
    elif what == "version":
        parquet.write_table(table.replace_schema_metadata({"gcspy_features": "99"}), str(path))
    elif what == "kind":
        at = table.column_names.index("resident_most")
        parquet.write_table(
            table.set_column(at, "resident_most", pa.array(["many"] * 6)), str(path)
        )
    else:
        parquet.write_table(table.drop_columns(["fragmentation"]), str(path))
    assert main(["fleet", "report", str(path)]) not in (ExitCode.OK, ExitCode.USAGE)
    err = capsys.readouterr().err
    assert err.startswith("gcspy: ")
    assert str(path) in err
    assert err.count("\n") == 1
