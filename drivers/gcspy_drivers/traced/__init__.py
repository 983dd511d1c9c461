"""The driver of traces that name every object: the rebuilt heap as spaces, tiles and streams, and answers about single objects.

`session` combines the parts, `growing_session` does while a trace is read or still written, `moments` determines the events; `heap_space` and `name_space` each
build one kind of space, `query_service` answers questions. The heap comes from `gcspy_objects`,
whatever the trace's format.
"""

from __future__ import annotations

from gcspy_drivers.traced.growing_session import GrowingSession
from gcspy_drivers.traced.options import TracedOptions
from gcspy_drivers.traced.query_service import TraceQueryService
from gcspy_drivers.traced.session import TracedSession

__all__ = ["GrowingSession", "TraceQueryService", "TracedOptions", "TracedSession"]
