"""`PrometheusEndpoint`: the latest snapshot over HTTP, in Prometheus's text format or OpenMetrics.

On loopback anybody may read it, as with other exporters; elsewhere it has TLS and wants a bearer token.
A request is answered from the latest snapshot: no client makes a process be read. Knows snapshots and
HTTP; does not know processes.
"""

from __future__ import annotations

import hmac
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from gcspy_protocol.errors import CommandError
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import make_wsgi_app
from prometheus_client.registry import Collector, CollectorRegistry

from gcspy.exit_codes import ExitCode
from gcspy.metrics.measures import MEASURES, Measure
from gcspy.metrics.snapshot import SnapshotBoard

__all__ = ["PrometheusEndpoint", "prometheus_name"]

_REQUEST_SECS = 10.0
_MOST_REQUESTS = 8
_LABELS = ("process.pid", "process.executable.name", "process.creation.time")

_UNITS = {"By": "bytes", "s": "seconds", "1": "", "By/min": "bytes_per_minute"}


def prometheus_name(measure: Measure) -> str:
    """Return the name by the rules of OpenTelemetry's specification: dots are underscores, and the unit follows."""
    name = measure.name.replace(".", "_")
    unit = _UNITS.get(measure.unit, "")
    if unit and not name.endswith(unit):
        name = f"{name}_{unit}"
    return name


class _Collector(Collector):
    """The metrics of the latest snapshot, made at each request."""

    def __init__(self, board: SnapshotBoard) -> None:
        self._board = board

    def collect(self) -> Iterator[Metric]:
        """Yield the families that have samples."""
        latest = self._board.latest
        attribute: dict[str, str] = {}
        for process in latest.processes:
            for reading in process.readings:
                for name, _value in reading.attributes:
                    attribute[reading.measure.name] = name
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for measure in MEASURES:
            labels = [*_LABELS, *filter(None, [attribute.get(measure.name)])]
            kind = CounterMetricFamily if measure.counts else GaugeMetricFamily
            names = [label.replace(".", "_") for label in labels]
            families[measure.name] = kind(prometheus_name(measure), measure.about, labels=names)
        for process in latest.processes:
            own = [process.labels[name] for name in _LABELS]
            for reading in process.readings:
                more = [value for _name, value in reading.attributes]
                families[reading.measure.name].add_metric([*own, *more], reading.value)
        yield from (family for family in families.values() if family.samples)
        processes = GaugeMetricFamily("gcspy_processes", "Processes that are monitored")
        processes.add_metric([], len(latest.processes))
        yield processes
        age = GaugeMetricFamily("gcspy_sample_age_seconds", "Age of these numbers")
        age.add_metric([], round(self._board.age_secs, 3))
        yield age
        info = GaugeMetricFamily(
            "gcspy_session_info", "The command that shows the tiles", labels=["view"]
        )
        info.add_metric([self._board.join], 1)
        yield info


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_SECS

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: a scrape every few seconds is not news."""


class _HttpServer(ThreadingMixIn, WSGIServer):
    """A server of a few requests at a time; further ones are closed at once."""

    daemon_threads = True
    request_queue_size = 16
    context: ssl.SSLContext | None = None

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(_MOST_REQUESTS)
        super().__init__(*arguments)

    def server_bind(self) -> None:
        """Bind, without a look-up of the host's name, which may take long; also where an exporter has just ended."""
        self.server_name = str(self.server_address[0])
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_port = int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if there is a place."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Begin TLS in the client's own thread, so that a client that does not speak it blocks nobody."""
        try:
            request.settimeout(_REQUEST_SECS)
            if self.context is not None:
                try:
                    request = self.context.wrap_socket(request, server_side=True)
                except OSError:
                    self.shutdown_request(request)
                    return
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report nothing: a client that breaks off is its own affair."""


class PrometheusEndpoint:
    """The endpoint, until it is closed.

    Args:
        board: Has the latest snapshot.
        host: Address to listen at.
        port: Port; 0: any.
        token: The bearer token; None: anybody may read.
        context: TLS; None: plain HTTP.

    Raises:
        CommandError: The address cannot be listened on.
    """

    def __init__(
        self,
        board: SnapshotBoard,
        host: str,
        port: int,
        *,
        token: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(board))
        self._metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(registry)
        self._token = token
        try:
            self._server = _HttpServer((host, port), _Handler)
        except OSError as error:
            raise CommandError(
                f"cannot listen on {host}:{port}: {error.strerror}; give another --listen",
                exit_code=ExitCode.NO_CONNECTION,
            ) from error
        self._server.context = context
        self._server.set_app(self._answer)
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.5}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if self._token is not None:
            given = str(environment.get("HTTP_AUTHORIZATION", ""))
            if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                start("401 Unauthorized", [("WWW-Authenticate", "Bearer")])
                return [b"a bearer token is needed\n"]
        if environment.get("PATH_INFO") not in ("/metrics", "/"):
            start("404 Not Found", [])
            return [b"the metrics are at /metrics\n"]
        return self._metrics(environment, start)
