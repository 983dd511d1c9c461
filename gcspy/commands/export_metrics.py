"""`gcspy export-metrics`: numbers of the heaps of a host, for Prometheus or OpenTelemetry."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from gcspy_protocol.address import TcpAddress, parse_address

from gcspy.connection.tokens import own_token
from gcspy.options import read_token, token_option
from gcspy.output.quantities import budget_of

__all__ = ["command"]

_DEFAULT_LISTEN = "127.0.0.1:9464"
"""The port that OpenTelemetry's Prometheus exporters have."""


class _Pattern(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "pattern"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        """Compile the user's argument."""
        try:
            return re.compile(str(value))
        except re.error as error:
            self.fail(f"{value!r} is not a regular expression: {error}", param, ctx)


@click.command()
@click.argument("pids", metavar="[PID]...", nargs=-1, type=click.IntRange(1))
@click.option(
    "--match",
    "pattern",
    type=_Pattern(),
    metavar="PATTERN",
    help="Only processes whose command line contains this regular expression. Default: all processes of this user with a known runtime.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help=f"Address for Prometheus; port 0: any free port. Default without --otlp: {_DEFAULT_LISTEN}.",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="Push to this OTLP/HTTP address, for example http://localhost:4318/v1/metrics. Headers and certificates: the variables OTEL_EXPORTER_OTLP_HEADERS and OTEL_EXPORTER_OTLP_CERTIFICATE.",
)
@click.option(
    "--every",
    "period_secs",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two samples, and between two pushes.",
)
@click.option(
    "--budget",
    type=budget_of,
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="Maximum share of the processes' time spent on reading their heaps. Above it, heaps are read more rarely than --every says.",
)
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Certificate chain and key (PEM) for an address that is not loopback. Default: a certificate made at start.",
)
@token_option
def command(
    pids: tuple[int, ...],
    pattern: re.Pattern[str] | None,
    listen: str | None,
    otlp: str | None,
    period_secs: float,
    budget: int,
    certificate: Path | None,
    token_file: Path | None,
) -> int:
    """Export numbers about the heaps of this host to Prometheus or OpenTelemetry.

    One exporter reads all processes, without stopping any: memory, growth, fill, fragmentation,
    reclaimable bytes, collections. Each process has at most 30 series. Processes may come and go. The
    metric gcspy_session_info has the command that shows the tiles behind the numbers.

    An address that is not loopback has TLS and needs a token, sent as a bearer token.
    """
    from gcspy.metrics.exporter import serve_metrics

    place = parse_address(listen or _DEFAULT_LISTEN)
    if not isinstance(place, TcpAddress):
        raise click.BadParameter("give HOST:PORT", param_hint="--listen")
    if certificate is not None and place.is_loopback:
        raise click.UsageError("--certificate needs a --listen that is not loopback")
    with ExitStack() as stack:
        token = None
        if listen is not None and not place.is_loopback:
            token = read_token(token_file, ask=False) or stack.enter_context(own_token(0))
        return serve_metrics(
            pids=pids,
            pattern=pattern,
            listen=place if listen or otlp is None else None,
            otlp=otlp,
            period_secs=period_secs,
            budget=budget,
            certificate=certificate,
            token=token,
        )
