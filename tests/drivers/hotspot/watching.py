"""A driver with a server in the test's own thread, to inspect the values it fills in."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
from gcspy_drivers.hotspot.driver import HotSpotDriver
from gcspy_protocol.messages import Event

from gcspy_server.api import AttachOptions, ServerSpace, ServerStream


class Watched:
    """A JVM that is watched.

    Args:
        pid: The process.
        options: As the user would choose them.
        observed: Whether all events are collected here, as by a client that must not miss one.
        budget: Maximum share of the JVM's time spent on monitoring, in thousandths; None: there is no budget.
    """

    def __init__(
        self,
        pid: int,
        options: AttachOptions | None = None,
        *,
        observed: bool = True,
        budget: int | None = None,
    ) -> None:
        self._pid = pid
        self._observed = observed
        self._budget = budget
        self._options = options or AttachOptions()
        self.attach()

    def attach(self) -> None:
        """Attach, another time too."""
        self.driver = HotSpotDriver.attach(self._pid, self._options)
        self.server = self.driver.describe().server(budget=self._budget)
        self.events: list[Event] = []
        if self._observed:
            self.server.add_observer(self.events.append)
        try:
            self.driver.open(self.server)
        except BaseException:
            self.driver.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.driver.close()

    def space(self, name: str) -> ServerSpace:
        """Return a space by its name."""
        return next(space for space in self.server.spaces if space.name == name)

    def stream(self, space: str, name: str) -> ServerStream:
        """Return a stream by its name."""
        return next(stream for stream in self.space(space).streams if stream.name == name)

    def values(self, space: str, name: str) -> npt.NDArray[np.int64]:
        """Return a stream's values, all of which must be known."""
        stream = self.stream(space, name)
        known = stream.known
        assert known is None or known.all(), (
            f"{space}: {name} is unknown in {np.count_nonzero(~known)} tiles"
        )
        return stream.data.astype(np.int64)

    def pools(self) -> dict[str, int]:
        """Return what is used of each pool."""
        names = self.space("Memory pools").names
        texts = getattr(names, "names", ())
        return dict(zip(texts, self.stream("Memory pools", "Used").data.tolist(), strict=True))
