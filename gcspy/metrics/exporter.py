"""`export`: monitors the processes of a host in one session, and keeps the snapshot of its numbers up to date.

The session is served on a local socket too, so that `gcspy view` shows the tiles behind a number.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError, TargetError

from gcspy.exit_codes import ExitCode
from gcspy.hosts.stop_signals import stop_at_signals
from gcspy.metrics.host_family import HostFamily
from gcspy.metrics.measures import is_measured, measures_of
from gcspy.metrics.snapshot import ProcessReadings, Snapshot, SnapshotBoard
from gcspy.output.terminal import say, say_aside
from gcspy_session.network.address import default_address

if TYPE_CHECKING:
    import re
    import ssl
    from pathlib import Path

    from gcspy_protocol.address import TcpAddress

    from gcspy.tree.tree_driver import TreePart

__all__ = ["export", "serve_metrics"]


def export(
    family: HostFamily,
    board: SnapshotBoard,
    *,
    clock_hz: float,
    budget: int,
    stop: threading.Event,
    on_ready: Callable[[], None],
) -> None:
    """Monitor until `stop` is set.

    Args:
        family: The processes.
        board: Receives the snapshots.
        clock_hz: Samples a second.
        budget: Maximum share of the processes' time for monitoring, in thousandths. What the heaps
            have is read more rarely than at each sample if it would take more.
        stop: Set by a signal handler.
        on_ready: Called once, when `board` has the first snapshot and the address to join.
    """
    from gcspy.connection.target import attach_one
    from gcspy.metrics.host_driver import HostDriver
    from gcspy_server.api import AttachOptions, Driver
    from gcspy_server.sampler import run_driver

    sampling = AttachOptions(tiles=4096, clock_hz=clock_hz)
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    ticks = os.sysconf("SC_CLK_TCK")

    def attach(pid: int) -> tuple[str, Driver]:
        chosen, found, _taken = attach_one(pid, sampling, "", {})
        return chosen, found

    def note(parts: tuple[TreePart, ...]) -> None:
        board.latest = Snapshot(
            time.monotonic(),
            tuple(
                ProcessReadings(
                    part.process.pid,
                    part.process.name,
                    round(booted + part.process.started / ticks),
                    measures_of(part),
                )
                for part in parts
            ),
        )

    driver = HostDriver(family, attach, sampling, note)
    try:
        server = driver.describe().server(budget=budget)
        driver.open(server)
        # Numbers are read when all processes have been: an event asks for them, and tells nothing.
        server.add_observer(lambda _event: None, lambda space: is_measured(space.name), exact=False)
        with server.serve(str(default_address(os.getpid()))) as listening:
            board.join = f"gcspy view {listening.addresses[0]}"
            driver.tick()
            on_ready()
            ended = run_driver(driver, server, clock_hz, stop)
            if ended is not None:
                raise TargetError(ended)
    finally:
        driver.close()


def serve_metrics(
    *,
    pids: tuple[int, ...],
    pattern: re.Pattern[str] | None,
    listen: TcpAddress | None,
    otlp: str | None,
    period_secs: float,
    budget: int,
    certificate: Path | None,
    token: str | None,
) -> int:
    """Export until Ctrl-C or SIGTERM; for `gcspy export-metrics`.

    Args:
        pids: Only these processes; empty: see `pattern`.
        pattern: See `HostFamily`.
        listen: Address for Prometheus; None: none.
        otlp: Address to push to; None: none.
        period_secs: Time between two samples, and two pushes.
        budget: See `export`.
        certificate: PEM file for an address beyond this machine; None: one is made.
        token: Bearer token for such an address.

    Returns:
        The exit code.

    Raises:
        CommandError: A package is not installed, or the address cannot be listened on.
    """
    stop = stop_at_signals()
    board = SnapshotBoard()
    with ExitStack() as stack:

        def ready() -> None:
            if listen is not None:
                try:
                    from gcspy.metrics.prometheus_endpoint import PrometheusEndpoint
                except ImportError as error:
                    raise _missing("prometheus-client", "metrics") from error
                context = None if listen.is_loopback else _tls(certificate)
                endpoint = PrometheusEndpoint(
                    board, listen.host, listen.port, token=token, context=context
                )
                stack.callback(endpoint.close)
                scheme = "http" if context is None else "https"
                say(
                    f"gcspy: metrics at {scheme}://{_bracketed(listen.host)}:{endpoint.port}/metrics"
                )
            if otlp is not None:
                try:
                    from gcspy.metrics.otlp_push import OtlpPush
                except ImportError as error:
                    raise _missing("opentelemetry-sdk", "otlp") from error
                stack.callback(OtlpPush(board, otlp, period_secs).close)
                say(f"gcspy: metrics are pushed to {otlp} every {period_secs:g} s")
            count = len(board.latest.processes)
            say(f"gcspy: {count:,} process{'' if count == 1 else 'es'}; tiles: {board.join}")

        export(
            HostFamily(pattern, pids),
            board,
            clock_hz=1 / period_secs,
            budget=budget,
            stop=stop,
            on_ready=ready,
        )
    return ExitCode.OK


def _missing(package: str, extra: str) -> CommandError:
    return CommandError(
        f"this needs {package}, which is not installed; in a clone of gcspy: pip install '.[{extra}]'",
        exit_code=ExitCode.MISSING_PART,
    )


def _tls(certificate: Path | None) -> ssl.SSLContext:
    import ssl

    from gcspy_session.network.tls import session_certificate

    if certificate is None:
        context, fingerprint = session_certificate()
        say_aside(f"the certificate was made at start; its SHA-256 is {fingerprint}")
        return context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate)
    except OSError as error:
        raise CommandError(
            f"{certificate} is not a PEM file with a certificate and its key: {error}"
        ) from error
    return context


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
