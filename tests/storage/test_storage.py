"""Recordings at addresses: the same as local ones, in few requests, from a slow and a failing server, and without a secret in any message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import ChunkRule, FileSource, FileStore, Recording, layout, pack

from gcspy.cli import main
from tests.replay.recorded import Small
from tests.s3_server import S3Server, s3_server

pytest.importorskip("s3fs", reason="needs the extra storage")

from gcspy.fleet.features import features_of
from gcspy.storage import remote_source, remote_store
from gcspy.storage.remote_store import RemoteRing

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "replay/samples/demo-cpython-3.11.gcspy"
SECRET = "wJalrXUtnFEMI"


@pytest.fixture(scope="module")
def running() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def server(running: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """An empty server, to which the usual variables lead."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    running.objects.clear()
    running.requests.clear()
    running.delay_secs, running.failures, running.parts = 0.0, 0, 0
    monkeypatch.setenv("AWS_ENDPOINT_URL", running.address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(remote_source, "_PAUSE_SECS", 0.0)
    return running


class Noise(Small):
    """A session whose values compress badly."""

    @staticmethod
    def values(number: int, tiles: int = 9) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """The values at an event."""
        return np.random.default_rng(number).integers(0, 256, tiles, dtype=np.uint8)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of 1.5 MB in 27 chunks that compress badly."""
    return noise(tmp_path_factory.mktemp("large"))


def noise(folder: Path) -> Path:
    """Write a recording of 1.5 MB in 27 chunks that compress badly."""
    path = folder / "large.gcspy"
    rule = ChunkRule(weight=99, most_events=8)
    Noise(FileStore(path), rule=rule, tiles=12_000).events(210).writer.close()
    return path


def test_a_recording_is_opened_sought_and_listed_in_few_requests(
    server: S3Server, large: Path
) -> None:
    server.objects["b/large.gcspy"] = large.read_bytes()
    assert large.stat().st_size > 1_500_000
    with Recording.open("s3://b/large.gcspy") as found, Recording.open(large) as local:
        opened = len(server.requests)
        assert opened <= 5
        for number in (200, 3, 111, 60, 150):
            before = len(server.requests)
            state = found.seek(number).spaces[1].streams[0].values
            assert len(server.requests) - before <= 2
            np.testing.assert_array_equal(state, local.seek(number).spaces[1].streams[0].values)
        before = len(server.requests)
        np.testing.assert_array_equal(found.events, local.events)
        assert len(server.requests) == before, "the table came with the index"
        assert sum(1 for _ in found.steps()) == 210
        with found.again() as twin:
            np.testing.assert_array_equal(twin.events, local.events)


def test_a_packed_recording_takes_as_few(server: S3Server, large: Path, tmp_path: Path) -> None:
    packed = tmp_path / "large.gcspy.zst"
    with packed.open("wb") as file, FileSource(large) as source:
        pack(source, file)
    server.objects["b/large.gcspy.zst"] = packed.read_bytes()
    with Recording.open("s3://b/large.gcspy.zst") as found, Recording.open(large) as local:
        assert len(server.requests) <= 5
        before = len(server.requests)
        found.seek(111)
        assert len(server.requests) - before <= 2
        before = len(server.requests)
        np.testing.assert_array_equal(found.events, local.events)
        assert len(server.requests) - before <= 3


def test_the_table_of_a_very_large_recording_is_fetched_in_exact_ranges_many_at_a_time(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "_MOST_END_BYTES", 0)
    large = noise(tmp_path)
    monkeypatch.setattr(remote_source, "_MOST_PREFETCHED", 100_000)
    monkeypatch.setattr(remote_source, "_MOST_RANGES", 20)
    server.objects["b/large.gcspy"] = large.read_bytes()
    with Recording.open("s3://b/large.gcspy") as found, Recording.open(large) as local:
        server.requests.clear()
        server.sent_bytes, server.most_at_once, server.delay_secs = 0, 0, 0.05
        np.testing.assert_array_equal(found.events, local.events)
        assert len(server.requests) <= 27, "a request for each chunk at most"
        assert server.sent_bytes < 60_000
        assert server.most_at_once > 5
    server.delay_secs = 0.0
    packed = tmp_path / "large.gcspy.zst"
    with packed.open("wb") as file, FileSource(large) as source:
        pack(source, file)
    server.objects["b/large.gcspy.zst"] = packed.read_bytes()
    with Recording.open("s3://b/large.gcspy.zst") as found, Recording.open(large) as local:
        np.testing.assert_array_equal(found.events, local.events)
    server.objects["b/large.gcspy"] = large.read_bytes()
    with Recording.open("s3://b/large.gcspy") as found:
        server.objects["b/large.gcspy"] = large.read_bytes()[:300_000]
        with pytest.raises(RecordingError, match=r"it was replaced|cannot be read"):
            assert len(found.events)
        server.objects["b/large.gcspy"] = large.read_bytes()
        server.failures = 1
        assert len(found.events) == 210


def test_a_slow_server_is_waited_for_and_a_failing_one_asked_again(
    server: S3Server, capfd: pytest.CaptureFixture[str]
) -> None:
    server.objects["b/demo.gcspy"] = DEMO.read_bytes()
    server.delay_secs, server.failures = 0.05, 2
    assert main(["info", "s3://b/demo.gcspy", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert main(["info", str(DEMO), "--json"]) == 0
    assert found == json.loads(capfd.readouterr().out)
    assert server.failures == 0


def test_no_message_has_a_secret(server: S3Server, capfd: pytest.CaptureFixture[str]) -> None:
    server.objects["b/demo.gcspy"] = DEMO.read_bytes()
    port = server.address.rpartition(":")[2]
    signed = f"http://user:{SECRET}@127.0.0.1:{port}/b/demo.gcspy?X-Amz-Signature={SECRET}"
    for address, failures in (
        ("s3://b/none.gcspy", 0),
        (signed.replace("demo", "none"), 0),
        ("s3://b/demo.gcspy", 1000),
        (signed, 1000),
    ):
        server.failures = failures
        assert main(["info", address]) != 0
        out, err = capfd.readouterr()
        assert "b/demo.gcspy" in err or "b/none.gcspy" in err
        assert SECRET not in out + err
        assert "Traceback" not in err
    server.failures = 0
    assert any("AKIAEXAMPLE" in one for one in server.secrets)
    assert not any(SECRET in one for one in server.secrets)


def test_a_web_server_and_memory_are_storages_too(server: S3Server) -> None:
    import fsspec

    server.objects["b/demo.gcspy"] = DEMO.read_bytes()
    fsspec.filesystem("memory").pipe_file("/here/demo.gcspy", DEMO.read_bytes())
    with Recording.open(DEMO) as local:
        for address in (f"{server.address}/b/demo.gcspy", "memory://here/demo.gcspy"):
            with Recording.open(address) as found:
                np.testing.assert_array_equal(found.events, local.events)
    fsspec.filesystem("memory").rm_file("/here/demo.gcspy")


def test_features_of_an_address_are_those_of_the_file(server: S3Server) -> None:
    server.objects["b/demo.gcspy"] = DEMO.read_bytes()
    found, local = features_of("s3://b/demo.gcspy"), features_of(str(DEMO))
    assert found.error is None
    assert replace(found, file=str(DEMO)) == local
    assert "there is no such file" in str(features_of("s3://b/none.gcspy").error)


def test_an_object_trace_at_an_address_is_converted(
    server: S3Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.objects["b/list.tar.xz"] = (ROOT / "objects/samples/anttracks/list.tar.xz").read_bytes()
    assert main(["convert", "s3://b/list.tar.xz", "-o", str(tmp_path / "t.gctrace"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["events"] > 10_000


def test_what_is_replaced_while_it_is_read_is_an_error(server: S3Server, large: Path) -> None:
    server.objects["b/large.gcspy"] = large.read_bytes()
    with Recording.open("s3://b/large.gcspy") as found:
        server.objects["b/large.gcspy"] = large.read_bytes()[:300_000]
        with pytest.raises(RecordingError, match="it was replaced"):
            found.seek(150)


@pytest.mark.parametrize(
    ("address", "what"),
    [("nothing://b/x.gcspy", "there is no storage"), ("s3://b/", "expected 1 to")],
)
def test_an_address_that_cannot_be_is_said_so(server: S3Server, address: str, what: str) -> None:
    server.objects["b/else"] = b""
    with pytest.raises(RecordingError, match=what):
        Recording.open(address)


# Recording into a storage


def test_a_ring_keeps_the_latest_parts_in_a_storage(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_store, "_PIECE_BYTES", 5 << 20)
    store = RemoteRing("s3://b/night", keep_bytes=8_000)
    Small(store, rule=ChunkRule(weight=99, most_events=5)).events(400).writer.close()
    names = sorted(server.objects)
    assert len(names) > 2
    assert names[0] != "b/night/000001.gcspy", "the first ones went"
    assert sum(map(len, server.objects.values())) <= 8_000 + max(map(len, server.objects.values()))
    assert sorted(store.kept) == [f"s3://{name}" for name in names]
    with Recording.open("s3://b/night/") as found:
        assert found.last == 400
        assert found.finished
        for number in (found.first, 399):
            np.testing.assert_array_equal(
                found.seek(number).spaces[1].streams[0].values, Small.values(number)
            )
    with pytest.raises(RecordingError, match="already contains a recording"):
        RemoteRing("s3://b/night", keep_bytes=8_000)
    RemoteRing("s3://b/night", keep_bytes=8_000, replace=True).close()
    assert not server.objects


def test_a_large_part_goes_in_pieces(server: S3Server, tmp_path: Path) -> None:
    store = RemoteRing("s3://b/night", keep_nanos=10**12)
    store.begin(1)
    data = np.random.default_rng(1).bytes(20 << 20)
    store.append(data, time_nanos=0)
    store.close()
    assert server.objects["b/night/000001.gcspy"] == data
    assert server.parts >= 2


def test_parts_that_a_storage_does_not_take_stay_in_a_folder_that_is_named(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_store, "_PAUSES", (0.0, 0.0))
    store = RemoteRing("s3://b/night", keep_nanos=10**12)
    server.failures = 10**9
    store.begin(1)
    store.append(b"data", time_nanos=0)
    with pytest.raises(RecordingError, match="1 parts could not be uploaded") as caught:
        store.close()
    server.failures = 0
    folder = Path(str(caught.value).partition(" are in ")[2].partition(":")[0])
    assert (folder / "000001.gcspy").read_bytes() == b"data"
    (folder / "000001.gcspy").unlink()
    folder.rmdir()
