"""AntTracks traces as ours: every record and every name is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.gctrace.conversion import convert_trace
from gcspy_objects.records import COLUMNS
from gcspy_objects.trace import Trace, open_trace

from tests.objects.samples import path_of

PARTS = ("pointer_kind", "pointer_value", "buffer_mode")


def columns(trace: Trace) -> dict[str, np.ndarray]:
    """Return all columns of all records, but for the places in the file."""
    batches = list(trace.batches())
    return {
        name: np.concatenate([getattr(one, name) for one in batches])
        for name in (*COLUMNS, *PARTS)
        if name not in ("buffer", "offset")
    }


@pytest.mark.parametrize("name", ["pointers", "threads"])
def test_nothing_is_lost(name: str, tmp_path: Path) -> None:
    path = tmp_path / "converted.gctrace"
    with open_trace(path_of(name)) as trace:
        with path.open("wb") as file:
            written = convert_trace(trace, file)
        wanted = columns(trace)
        with open_trace(path) as converted:
            found = columns(converted)
            assert [one for one in wanted if not np.array_equal(wanted[one], found[one])] == []
            assert written.events == len(wanted["kind"])
            assert converted.types.names == trace.types.names
            assert converted.types.internal == trace.types.internal
            assert np.array_equal(converted.types.instance_bytes, trace.types.instance_bytes)
            assert {row: list(one) for row, one in converted.types.fields.items()} == {
                row: list(one) for row, one in trace.types.fields.items() if one
            }
            assert [converted.sites.frames(row) for row in range(len(trace.sites))] == [
                trace.sites.frames(row) for row in range(len(trace.sites))
            ]
            assert converted.sites.labels == trace.sites.labels
            assert dict(converted.causes) == dict(trace.causes)
            assert converted.threads == trace.threads
