"""The exporter on real processes: scraped over HTTP and by Prometheus itself, pushed over OTLP; strangers are kept out."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gcspy.metrics.exporter import export
from gcspy.metrics.host_family import HostFamily
from gcspy.metrics.measures import MEASURES, Reading
from gcspy.metrics.prometheus_endpoint import PrometheusEndpoint
from gcspy.metrics.snapshot import ProcessReadings, Snapshot, SnapshotBoard
from gcspy_session.network.tls import session_certificate
from tests.tree.test_tree_driver import Prefork, prefork
from tests.waiting import wait_until

DASHBOARD = Path(__file__).parents[2] / "docs/examples/grafana-dashboard.json"


def board() -> SnapshotBoard:
    readings = (
        Reading(MEASURES[0], 4096),
        Reading(MEASURES[12], 3, (("cpython.gc.generation", "0"),)),
    )
    found = SnapshotBoard("gcspy view unix:/x")
    found.latest = Snapshot(found.latest.secs, (ProcessReadings(7, 'wo"rker', 0, readings),))
    return found


@contextmanager
def endpoint(token: str | None = None, context: ssl.SSLContext | None = None) -> Iterator[str]:
    found = PrometheusEndpoint(board(), "127.0.0.1", 0, token=token, context=context)
    try:
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{found.port}"
    finally:
        found.close()


def test_an_exporter_is_started_again_at_once_at_its_port() -> None:
    first = PrometheusEndpoint(board(), "127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", first.port), timeout=60) as scraper:
        scraper.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        while scraper.recv(
            1 << 16
        ):  # its own end comes first, so the system keeps the port for a minute
            pass
        first.close()
    again = PrometheusEndpoint(board(), "127.0.0.1", first.port)
    try:
        assert "process_memory_usage_bytes" in page(f"http://127.0.0.1:{again.port}/metrics")
    finally:
        again.close()


def page(url: str, token: str = "") -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    tls = context if url.startswith("https") else None
    with urllib.request.urlopen(request, context=tls, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def test_numbers_have_labels_and_texts_of_strangers_are_escaped() -> None:
    with endpoint() as url:
        lines = page(f"{url}/metrics").splitlines()
    labels = 'process_creation_time="1970-01-01T00:00:00Z",process_executable_name="wo\\"rker",process_pid="7"'
    assert f"process_memory_usage_bytes{{{labels}}} 4096.0" in lines
    assert f'cpython_gc_collections_total{{cpython_gc_generation="0",{labels}}} 3.0' in lines
    assert 'gcspy_session_info{view="gcspy view unix:/x"} 1.0' in lines
    assert not [line for line in lines if line.startswith("gcspy_heap")]


def test_other_paths_are_not_found() -> None:
    with endpoint() as url, pytest.raises(urllib.error.HTTPError, match="404"):
        page(f"{url}/etc/passwd")


@pytest.mark.parametrize("token", ["", "wrong", "éé"])
def test_a_wrong_token_is_refused(token: str) -> None:
    context, _fingerprint = session_certificate()
    with endpoint("right", context) as url:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            page(f"{url}/metrics", token.encode().decode("latin-1"))
        assert "process_memory_usage" in page(f"{url}/metrics", "right")


def test_clients_that_say_nothing_stop_nobody() -> None:
    context, _fingerprint = session_certificate()
    with endpoint("right", context) as url:
        place = urllib.parse.urlsplit(url)
        silent = [socket.create_connection((place.hostname, place.port or 0)) for _ in range(4)]
        assert "process_memory_usage" in page(f"{url}/metrics", "right")
        for one in silent:
            one.close()


@contextmanager
def exported(program: Prefork, *others: int) -> Iterator[SnapshotBoard]:
    """Export the processes of a program, and others, in a thread."""
    found, stop, ready = SnapshotBoard(), threading.Event(), threading.Event()
    family = HostFamily(None, (program.pid, *program.workers, *others), known=lambda _pid: True)
    thread = threading.Thread(
        target=export,
        args=(family, found),
        kwargs={"clock_hz": 5.0, "budget": 1000, "stop": stop, "on_ready": ready.set},
    )
    thread.start()
    try:
        wait_until(lambda: ready.is_set() or not thread.is_alive(), "the exporter is ready")
        yield found
    finally:
        stop.set()
        thread.join()


def dashboard_queries() -> list[str]:
    """Each query of the dashboard, with everything chosen in its variables, in Grafana's place."""
    dashboard = json.loads(DASHBOARD.read_text())
    variables = {f"${one['name']}": ".*" for one in dashboard["templating"]["list"]}
    found = []
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"]
            for name, value in variables.items():
                query = query.replace(name, value)
            assert "$" not in query
            found.append(query)
    return found


@contextmanager
def native_program() -> Iterator[int]:
    """A program of which malloc is known and nothing else."""
    with subprocess.Popen(["tail", "-f", "/dev/null"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
def test_prometheus_sees_each_process_and_which_grow_and_answers_each_query_of_the_dashboard(
    tmp_path: Path,
) -> None:
    with (
        native_program() as native,
        prefork(4, 1) as program,
        exported(program, native) as found,
    ):
        served = PrometheusEndpoint(found, "127.0.0.1", 0)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (tmp_path / "prometheus.yml").write_text(
            f"global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: gcspy, static_configs: [{{targets: ['127.0.0.1:{served.port}']}}]}}]\n"
        )
        command = [
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

        def asked(query: str) -> dict[str, str]:
            text = urllib.parse.quote(query)
            try:
                answer = json.loads(page(f"http://127.0.0.1:{port}/api/v1/query?query={text}"))
            except (OSError, urllib.error.URLError):
                return {}
            rows = answer["data"]["result"]
            return {one["metric"].get("process_pid", ""): one["value"][1] for one in rows}

        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as prometheus:
            try:
                everybody = {str(pid) for pid in (program.pid, *program.workers, native)}
                wait_until(
                    lambda: set(asked("process_memory_usage_bytes")) == everybody,
                    "Prometheus sees all processes",
                    rest_secs=0.2,
                )
                leaking = {str(pid) for pid in program.leaking}
                wait_until(
                    lambda: set(asked("gcspy_memory_growing == 1")) == leaking,
                    "Prometheus sees which process grows",
                    rest_secs=0.5,
                )
                for query in dashboard_queries():
                    wait_until(
                        partial(asked, query),
                        f"Prometheus answers {query}",
                        rest_secs=0.2,
                    )
            finally:
                prometheus.terminate()
        served.close()


def test_numbers_are_pushed_over_otlp() -> None:
    pushed: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            pushed.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    from gcspy.metrics.otlp_push import OtlpPush

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        OtlpPush(board(), f"http://127.0.0.1:{server.server_port}/v1/metrics", 3600).close()
        server.shutdown()
        thread.join()
    request = ExportMetricsServiceRequest.FromString(_plain(pushed[-1]))
    (resource,) = request.resource_metrics
    metrics = {one.name: one for scope in resource.scope_metrics for one in scope.metrics}
    (point,) = metrics["process.memory.usage"].gauge.data_points
    assert (point.as_int or point.as_double) == 4096
    attributes = {one.key: one.value.string_value for one in point.attributes}
    assert attributes["process.pid"] == "7"
    assert metrics["cpython.gc.collections"].sum.is_monotonic


def _plain(body: bytes) -> bytes:
    import gzip

    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def test_the_command_serves_until_it_is_ended_and_leaves_the_processes_running() -> None:
    with prefork(2, 0) as program:
        command = [
            *(sys.executable, "-m", "gcspy", "export-metrics", str(program.pid)),
            *("--listen", "127.0.0.1:0", "--every", "0.5"),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as exporter:
            assert exporter.stdout is not None
            url = exporter.stdout.readline().split()[-1]
            assert f'process_pid="{program.pid}"' in page(url)
            assert exporter.stdout.readline().startswith(
                "gcspy: 1 process; tiles: gcspy view unix:"
            )
            exporter.send_signal(signal.SIGTERM)
            assert exporter.wait() == 0
        assert program.process.poll() is None
