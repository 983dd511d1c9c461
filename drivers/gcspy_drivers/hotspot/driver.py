"""The driver for HotSpot: with our agent if requested, and without one if that is not possible."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

from gcspy_drivers.hotspot.agent.agent import at_start
from gcspy_drivers.hotspot.cooperative_driver import CooperativeHotSpotDriver
from gcspy_drivers.hotspot.options import OPTIONS
from gcspy_drivers.hotspot.passive_driver import COLLECTIONS, PassiveJvmDriver
from gcspy_drivers.kit.sampled_driver import CLOCK
from gcspy_drivers.kit.stubbed_driver import attach_exactly_or_else
from gcspy_server.api import (
    AttachOptions,
    DetailTable,
    HeapQuestion,
    MemoryQuestion,
    MemoryReport,
    ProgramStart,
    Specificity,
)

__all__ = ["CLOCK", "COLLECTIONS", "HotSpotDriver"]

_MEETING_PLACE = "/tmp/gcspy-java-%p.sock"


class HotSpotDriver(PassiveJvmDriver):
    """Monitors one JVM."""

    has_stub = True
    declared_options = OPTIONS
    startable = "java with its arguments"

    @classmethod
    def command_line(cls, start: ProgramStart, /) -> tuple[int, list[str]] | None:
        """Start a JVM by its launcher, which is called ``java``, with the agent.

        Raises:
            Unsupported: There is no agent here.
        """
        name = start.program.rpartition("/")[2]
        if start.form or name != "java" or shutil.which(start.program) is None:
            return None
        option = at_start(f"fd:{start.stub_fd}")
        return Specificity.RUNTIME, [start.program, option, *start.arguments]

    @classmethod
    def start_option(cls) -> str:
        """Return the argument that makes a JVM load the agent, which looks for gcspy at each collection.

        Raises:
            Unsupported: There is no agent here.
        """
        return at_start(f"at:{_MEETING_PLACE}")

    @classmethod
    def investigate(
        cls, pid: int, question: HeapQuestion, progress: Callable[[str, int, int], None], /
    ) -> DetailTable:
        """Have the JVM write a heap dump, if it may be held, and answer from that; see `heap_answers`.

        Raises:
            TargetError: It may not be held, or there is no dump to be had.
        """
        # Half a second of imports that a session does not need.
        from gcspy_drivers.hotspot.heap_answers import answer

        return answer(pid, question, progress)

    @classmethod
    def explain_memory(
        cls, pid: int, question: MemoryQuestion, progress: Callable[[str, int, int], None], /
    ) -> Iterator[MemoryReport]:
        """Report the use of all of its memory, what holds it, and what grew, if it may be held for heap dumps; see `heap_answers`.

        Raises:
            TargetError: It may not be held, or there is no dump to be had.
        """
        from gcspy_drivers.hotspot.heap_answers import explain

        yield from explain(pid, question, progress)

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> PassiveJvmDriver:
        """Attach with the agent if the options request it; see `CooperativeHotSpotDriver` and `PassiveJvmDriver`.

        Raises:
            TargetError: The process cannot be monitored in this way.
        """
        return attach_exactly_or_else(CooperativeHotSpotDriver, PassiveJvmDriver, pid, options)
