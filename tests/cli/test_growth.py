"""`gcspy growth`: what grew over a recording, as the program that was recorded knows it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_replay.file import FileStore, RecordingWriter

from gcspy.connection.link import connect
from gcspy.exit_codes import ExitCode
from gcspy_server.api import Server, StringNames, UniformNames
from tests.cli.conftest import Run
from tests.waiting import PATIENCE_SECS

NAMES = ["(none)", "steady", "grows", "shrinks", "unknown at first", "new"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five events: of 1,000 bytes one type grows by 10 each, one shrinks by 5, one is new at the third."""
    path = tmp_path_factory.mktemp("growth") / "growth.gcspy"
    server = Server("growth", events=("Tick",))
    kinds = server.add_space("Types", names=StringNames(NAMES[:5]))
    sizes = kinds.add_stream("Bytes", dtype="i8", maximum=1 << 40, suffix=" bytes", order=0)
    objects = kinds.add_stream("Objects", dtype="i8", maximum=1 << 40, order=1)
    heap = server.add_space("Heap", names=UniformNames(0, 16, 8))
    top = heap.add_stream("Top type", dtype="u2", maximum=65535, names_from=kinds.id)
    session = ClientInterpreter()
    writer = RecordingWriter(FileStore(path), session)
    with (
        server.serve(f"unix:{path.parent}/s") as listening,
        connect(listening.addresses[0], client="test") as link,
    ):
        assert server.wait_for_client(30)
        for event in range(5):
            assert server.should_transmit(0) is not None
            kinds.resize(StringNames(NAMES[: 5 if event < 2 else 6]))
            kinds.reset()
            sizes.data[:] = 1000
            sizes.data[2] += 10 * event
            sizes.data[3] -= 5 * event
            sizes.data[4] = 9000
            objects.data[:] = 10 + event
            if event == 0:
                sizes.set_unknown([4])
            heap.reset()
            top.data[:] = 2
            server.finish(0)
            changes = 0
            while not changes:
                message = link.receive(PATIENCE_SECS)
                assert message is not None
                changes += session.apply(message) is not None
                writer.add(message)
    writer.close()
    assert np.array_equal(session.spaces[1].streams[0].values[:4], [1000, 1000, 1040, 980])
    return path


def test_what_grew_is_told_in_order_and_what_is_not_known_is_no_growth(
    path: Path, here: Run
) -> None:
    done = here("growth", str(path), "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    found = json.loads(done.stdout)
    assert (found["space"], found["from"], found["to"]) == ("Types", 1, 5)
    rows = {row["name"]: row for row in found["rows"]}
    assert list(rows)[:2] == ["new", "grows"]
    assert list(rows)[-1] == "shrinks"
    assert (rows["new"]["new"], rows["new"]["bytes"]) == (
        True,
        {"before": 0, "now": 1000, "grew": 1000},
    )
    assert rows["grows"]["bytes"]["grew"] == 40
    assert rows["shrinks"]["bytes"]["grew"] == -20
    assert rows["unknown at first"]["bytes"] == {"before": None, "now": 9000, "grew": None}
    assert rows["steady"]["objects"]["grew"] == 4


def test_a_range_can_be_chosen_and_the_table_is_for_people(path: Path, here: Run) -> None:
    done = here("growth", str(path), "--from", "2", "--to", "4", "--top", "2")
    assert done.returncode == ExitCode.OK, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Types: from event 2 to 4")
    assert lines[1].split()[:3] == ["Type", "Bytes", "grew"]
    assert lines[2].split()[:3] == ["new", "(new)", "+1,000"]
    assert len(lines) == 4


def test_a_recording_without_types_says_how_to_make_one(here: Run) -> None:
    sample = Path(__file__).parents[2] / "replay" / "samples" / "semispace.gcspy"
    done = here("growth", str(sample))
    assert done.returncode != ExitCode.OK
    assert "--level 3" in done.stderr
