"""Becoming a program whose allocation sites are counted, and the report at its end."""

from __future__ import annotations

import atexit
import json
import os
import runpy
import sys
import time
import types
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gcspy_counting.import_hook import ImportHook
from gcspy_counting.planner import Planner
from gcspy_counting.plans.plan import PlanKind
from gcspy_counting.program import CountedProgram
from gcspy_counting.sites import SiteChoice

__all__ = ["become"]


class _Report:
    """Writes the counts when the program ends, in the process that began it."""

    def __init__(
        self, program: CountedProgram, planner: Planner | None, settings: dict[str, Any]
    ) -> None:
        self._program = program
        self._planner = planner
        self._settings = settings
        self._process = os.getpid()
        self._begin = time.process_time()

    def write(self) -> None:
        """Write the counts; a forked child writes none."""
        if os.getpid() != self._process:
            return
        if self._planner is not None:
            self._planner.stop()
        ran = time.process_time() - self._begin
        program = self._program
        found = {
            "sites": [{**asdict(each.place), "count": each.count} for each in program.counts()],
            "increments": program.increments(),
            "counters": program.counters(),
            "code_objects": program.code_objects(),
            "not_countable": program.not_countable,
            "raises": program.raises(),
            "instrumenting_secs": program.instrumenting_secs,
            "processor_secs": ran,
            "replanned": [asdict(each) for each in self._planner.history] if self._planner else [],
        }
        if self._settings.get("least"):
            found["least_increments"] = program.least_increments()
        graph = self._settings.get("graph")
        if graph:
            from gcspy_counting.graph_picture import graph_picture

            found["graphs"] = [graph_picture(each) for each in program.graphs(graph)]
        result = Path(self._settings["result"])
        partial = result.with_suffix(".part")
        partial.write_text(json.dumps(found), encoding="utf-8")
        partial.replace(result)


def become(settings: dict[str, Any], kind: str, program: str, arguments: list[str]) -> None:
    """Instrument a program, and become it.

    Args:
        settings: As in `begin`.
        kind: ``script``, ``module`` or ``code``.
        program: The program.
        arguments: Its arguments.
    """
    counted = CountedProgram(PlanKind(settings["plan"]), SiteChoice(settings["sites"]))
    hook = ImportHook(counted.instrument, settings["include"])
    hook.install()
    planner = None
    if settings["replan"] and counted.is_planned_anew:
        planner = Planner(counted)
    fresh = types.ModuleType("__main__")
    fresh.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = fresh
    sys.argv = [{"script": program, "module": "-m", "code": "-c"}[kind], *arguments]
    report = _Report(counted, planner, settings)
    atexit.register(report.write)
    if planner is not None:
        planner.start()
    if kind == "module":
        sys.path[0] = os.getcwd()
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    if kind == "code":
        sys.path[0], name, text = "", "<string>", program.encode()
    else:
        sys.path[0], name = os.path.dirname(os.path.realpath(program)), program
        text = Path(program).read_bytes()
        fresh.__file__ = program
    code = counted.instrument(compile(text, name, "exec", dont_inherit=True))
    exec(code, fresh.__dict__)  # noqa: S102  # it is what was asked for
