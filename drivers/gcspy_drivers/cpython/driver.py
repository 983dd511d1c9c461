"""The driver for CPython: with a stub if requested, and without one if that is not possible."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator

from gcspy_protocol.errors import Unsupported

from gcspy_drivers.cpython.cooperation import bootstrap, stub
from gcspy_drivers.cpython.cooperation.collect_library import collect_library
from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver, modules_of
from gcspy_drivers.cpython.counting.package import folder_of_package
from gcspy_drivers.cpython.options import COUNT, COUNT_HOT, COUNT_IN, OPTIONS
from gcspy_drivers.cpython.passive_driver import COLLECTIONS, PassiveDriver
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.cpython.type_count import count_types
from gcspy_drivers.kit.sampled_driver import CLOCK
from gcspy_drivers.kit.stubbed_driver import attach_exactly_or_else
from gcspy_server.api import (
    AttachOptions,
    DetailTable,
    HeapQuestion,
    MemoryQuestion,
    MemoryReport,
    Mode,
    ProgramStart,
    Specificity,
    TypeCount,
)

__all__ = ["CLOCK", "COLLECTIONS", "CPythonDriver"]


class CPythonDriver(PassiveDriver):
    """Monitors one CPython process."""

    has_stub = True
    declared_options = OPTIONS
    startable = "a Python script, -m MODULE or -c CODE"

    @classmethod
    def command_line(cls, start: ProgramStart, /) -> tuple[int, list[str]] | None:
        """Start a script, a module or a text with an interpreter; any file may be a script."""
        form = start.form
        if not form:
            if not os.path.isfile(start.program):
                return None
            form = "script"
        count = ""
        if sites := start.values.get(COUNT.name):
            include = modules_of(str(start.values.get(COUNT_IN.name, "")))
            hot_secs = float(start.values.get(COUNT_HOT.name, COUNT_HOT.default))
            count = json.dumps([folder_of_package(), sites, hot_secs, *include])
        stub_there = [stub.__file__, collect_library(), str(start.stub_fd), count]
        command = [start.interpreter, bootstrap.__file__, *stub_there, form]
        sure = Specificity.RUNTIME if start.form else Specificity.ANY_PROCESS
        return sure, [*command, start.program, *start.arguments]

    @classmethod
    def investigate(
        cls, pid: int, question: HeapQuestion, progress: Callable[[str, int, int], None], /
    ) -> DetailTable:
        """Follow all references in a copy of the process's memory, and answer; see `graph.answers`.

        Raises:
            TargetError: The process cannot be read, or the roots of its version are not known.
        """
        # Half a second of imports that a session does not need.
        from gcspy_drivers.cpython.graph.answers import answer

        with Target(pid) as target:
            return answer(target, question, progress)

    @classmethod
    def explain_memory(
        cls, pid: int, question: MemoryQuestion, progress: Callable[[str, int, int], None], /
    ) -> Iterator[MemoryReport]:
        """Report the use of all of its memory, what holds it, and what grew; see `graph.answers`.

        Raises:
            TargetError: The process cannot be read, or the roots of its version are not known.
        """
        from gcspy_drivers.cpython.graph.answers import explain

        if question.sample_bytes:
            raise Unsupported(
                "CPython does not sample allocations: start the program with `python -X tracemalloc=10`, and omit --allocation-samples",
                found="--allocation-samples",
                known="JVMs",
            )
        with Target(pid) as target:
            yield from explain(target, question, progress)

    @classmethod
    def count_types(
        cls, pid: int, most: int, progress: Callable[[str, int, int], None], /
    ) -> Iterator[TypeCount]:
        """Count its objects by type; see `type_count.count_types`.

        Raises:
            TargetError: The process cannot be read.
        """
        with Target(pid) as target:
            yield from count_types(target, most, progress)

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> PassiveDriver:
        """Attach with a stub if the options request one; see `CooperativeDriver` and `PassiveDriver`.

        Raises:
            TargetError: The process cannot be monitored in this way.
        """
        if options.text("inject") and options.text("mode") == Mode.STOPPED.value:
            raise Unsupported(
                "a program with a stub waits by itself and cannot be stopped as well: omit inject or mode",
                found="inject and mode=stopped",
                known="one of them",
            )
        if options.text(COUNT.name) and options.stub_fd is None and not options.text("inject"):
            raise Unsupported(
                "counting allocation sites puts counters into the program's code, which needs a stub: give --inject gdb, or start the program with `gcspy run --count`",
                found="count without inject",
                known="both",
            )
        return attach_exactly_or_else(CooperativeDriver, PassiveDriver, pid, options)
