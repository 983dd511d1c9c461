"""A client that takes all it can get and counts: events, streams, and how many of these were fresh; for `slowdown` and `jvm_slowdown`.

    python -m benchmarks.harness.counting_client ADDRESS [all | collections | without-events]

With ``collections`` it filters the clock out, with ``without-events`` every kind of event. Prints one JSON object once the server says goodbye.
"""

from __future__ import annotations

import json
import sys
import time

from gcspy_protocol import ClientInterpreter
from gcspy_protocol.errors import GCspyError
from gcspy_protocol.messages import SetFilters
from gcspy_protocol.model import EventFilter

from gcspy.connection.link import Link, connect

__all__ = ["main"]

_PATIENCE_SECS = 30.0


def _connected(address: str, *, wants_control: bool) -> Link:
    until = time.monotonic() + _PATIENCE_SECS
    while True:
        try:
            return connect(address, client="bench", wants_control=wants_control)
        except GCspyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def main() -> None:
    """Count until the server ends."""
    choice = sys.argv[2] if len(sys.argv) > 2 else "all"
    link = _connected(sys.argv[1], wants_control=choice != "all")
    if choice != "all":
        wanted = {
            kind.id
            for kind in link.welcome.events
            if choice == "collections" and kind.name != "Clock"
        }
        link.send(
            SetFilters(
                filters=tuple(
                    EventFilter(event=kind.id, enabled=kind.id in wanted)
                    for kind in link.welcome.events
                )
            )
        )
    print("connected", flush=True)
    state, events, fresh, streams, ended = ClientInterpreter(), 0, 0, 0, ""
    try:
        for message in link:
            change = state.apply(message)
            if change is None or change.event.cached:
                continue
            events += 1
            for space in state.spaces.values():
                for stream in space.streams.values():
                    streams += 1
                    fresh += stream.is_fresh(change.event)
    except GCspyError as error:
        ended = str(error)  # as a rule the server went with what it watched
    print(json.dumps({"events": events, "fresh": fresh, "streams": streams, "ended": ended}))


if __name__ == "__main__":
    main()
