"""`OtlpPush`: pushes the latest snapshot over OTLP/HTTP, with OpenTelemetry's own SDK.

Endpoint, headers and certificates are those of the SDK's environment variables (OTEL_EXPORTER_OTLP_…),
so no credential is an option. Knows snapshots; does not know processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from gcspy.metrics.measures import MEASURES, Measure
from gcspy.metrics.snapshot import SnapshotBoard

__all__ = ["OtlpPush"]


class OtlpPush:
    """The push, until it is closed.

    Args:
        board: Has the latest snapshot.
        url: The address, with the path: ``http://localhost:4318/v1/metrics``.
        period_secs: Time between two pushes.
    """

    def __init__(self, board: SnapshotBoard, url: str, period_secs: float) -> None:
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=url), export_interval_millis=period_secs * 1000
        )
        resource = Resource.create(
            {"service.name": "gcspy", "host.name": os.uname().nodename, "gcspy.view": board.join}
        )
        self._provider = MeterProvider(metric_readers=[reader], resource=resource)
        meter = self._provider.get_meter("gcspy")
        for measure in MEASURES:
            create = (
                meter.create_observable_counter if measure.counts else meter.create_observable_gauge
            )
            create(
                measure.name,
                callbacks=[_observer(board, measure)],
                unit=measure.unit,
                description=measure.about,
            )

    def close(self) -> None:
        """Push once more, and stop."""
        self._provider.shutdown()


def _observer(
    board: SnapshotBoard, measure: Measure
) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def observe(_options: CallbackOptions) -> Iterator[Observation]:
        for process in board.latest.processes:
            for reading in process.readings:
                if reading.measure is measure:
                    yield Observation(reading.value, {**process.labels, **dict(reading.attributes)})

    return observe
