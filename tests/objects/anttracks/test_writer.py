"""Traces written as AntTracks': there and back, every record and every name is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.anttracks.writer import write_anttracks
from gcspy_objects.gctrace.conversion import convert_trace
from gcspy_objects.names import TypeField
from gcspy_objects.trace import Trace, open_trace
from gcspy_protocol.errors import GCspyError

from tests.objects.gctrace.made import MadeTrace, event_columns
from tests.objects.gctrace.test_conversion import columns
from tests.objects.samples import path_of


def _fields(trace: Trace) -> dict[int, list[TypeField]]:
    """Return the fields of the types that have any."""
    return {row: list(one) for row, one in trace.types.fields.items() if one}


@pytest.mark.parametrize("name", ["pointers", "threads"])
def test_a_trace_comes_back_from_ours(name: str, tmp_path: Path) -> None:
    with open_trace(path_of(name)) as trace:
        with (tmp_path / "ours.gctrace").open("wb") as file:
            convert_trace(trace, file)
        wanted = columns(trace)
        with open_trace(tmp_path / "ours.gctrace") as ours:
            written = write_anttracks(ours, tmp_path / "run")
        with open_trace(tmp_path / "run") as found:
            other = columns(found)
            assert {
                one: np.flatnonzero(wanted[one] != other[one])[:3].tolist()
                if len(wanted[one]) == len(other[one])
                else "length"
                for one in wanted
                if not np.array_equal(wanted[one], other[one])
            } == {}
            assert written == len(wanted["kind"])
            assert found.types.names == trace.types.names
            assert found.types.internal == trace.types.internal
            assert _fields(found) == _fields(trace)
            assert [found.sites.frames(row) for row in range(len(trace.sites))] == [
                trace.sites.frames(row) for row in range(len(trace.sites))
            ]
            assert found.sites.labels == trace.sites.labels
            assert dict(found.causes) == dict(trace.causes)
            assert found.threads == trace.threads


def test_a_trace_with_frees_is_refused(tmp_path: Path) -> None:
    made = MadeTrace()
    made.writer.write(event_columns([24], address=[64]), thread=1)
    with (
        made.opened(tmp_path / "f.gctrace") as trace,
        pytest.raises(GCspyError, match="a FREE record, for which an AntTracks"),
    ):
        write_anttracks(trace, tmp_path / "run")
