"""Drivers that make mistakes, one each: what is wrong with it, its source, and what must be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["FAULTS", "PACKAGE", "Fault", "install"]

PACKAGE = "gcspy-faulty 1.0"

BASE = """
import os
import threading

from gcspy_server.api import Driver, Recognition, ServerDescription, StringNames


class Good(Driver):
    name = "steady"
    title = "Steady space"

    @classmethod
    def recognise(cls, pid):
        mine = pid == int(os.environ["GCSPY_FAULTY_PID"])
        return Recognition(runtime="Faulty" if mine else "", supported=True)

    @classmethod
    def attach(cls, pid, options):
        return cls()

    def describe(self):
        return ServerDescription(name="A program", events=("Clock",))

    def open(self, server):
        self.server = server
        self.space = server.add_space(self.title, names=StringNames(["a", "b"]))
        self.stream = self.space.add_stream("value", minimum=0, maximum=100)

    def tick(self):
        request = self.server.should_transmit(0)
        if request is not None:
            self.space.reset()
            self.stream.data[:] = 7
            self.gather()
        self.server.finish(0)

    def gather(self):
        pass

    def hang(self):
        threading.Event().wait(600)


class Fault(Good):
    title = "Faulty space"
"""


@dataclass(frozen=True)
class Fault:
    """One faulty driver.

    Attributes:
        about: Its fault.
        source: Its module, after ``from gcspy_faulty_base import *``; the class is ``Bad``.
        told: The message of every command that meets the mistake.
        hangs: Whether what it does never ends.
        module: Whether there is a module at all.
    """

    about: str
    source: str
    told: str
    hangs: bool = False
    module: bool = True


def _method(head: str, body: str) -> str:
    return f"class Bad(Fault):\n    def {head}:\n        {body}\n"


def _class_method(head: str, body: str) -> str:
    return f"class Bad(Fault):\n    @classmethod\n    def {head}:\n        {body}\n"


def _gather(body: str) -> str:
    return _method("gather(self)", body)


def _recognise(body: str) -> str:
    return _class_method("recognise(cls, pid)", body)


FAULTS = {
    "no_module": Fault("its module is missing", "", "ModuleNotFoundError", module=False),
    "no_class": Fault("its class is missing", "X = 1", "has no attribute 'Bad'"),
    "syntax": Fault("a syntax error", "class Bad(:", "SyntaxError"),
    "import_raises": Fault("importing it raises", "1 / 0", "ZeroDivisionError"),
    "import_exits": Fault("importing it exits", "raise SystemExit(3)", "SystemExit: 3"),
    "no_type": Fault("a number in place of a class", "Bad = 7", "is not a class derived from"),
    "no_driver": Fault(
        "a class that is no driver", "class Bad:\n    pass", "is not a class derived from"
    ),
    "half_written": Fault(
        "methods are missing", "class Bad(Driver):\n    name = 'bad'", "does not define attach"
    ),
    "recognise_raises": Fault(
        "recognise raises", _recognise("raise ValueError('boom')"), "ValueError: boom"
    ),
    "recognise_exits": Fault("recognise exits", _recognise("raise SystemExit(3)"), "SystemExit: 3"),
    "recognise_hangs": Fault(
        "recognise hangs", _recognise("cls.hang(cls)"), "recognise takes longer than 8 s"
    ),
    "recognise_none": Fault(
        "recognise returns nothing", _recognise("return None"), "recognise returned None"
    ),
    "recognise_text": Fault(
        "recognise returns a text", _recognise("return 'yes'"), "a str, not a Recognition"
    ),
    "recognise_field": Fault(
        "recognise returns a number for a name",
        _recognise("return Recognition(runtime=7, supported=True)"),
        "a Recognition whose runtime is 7",
    ),
    "attach_raises": Fault(
        "attach raises",
        _class_method("attach(cls, pid, options)", "raise KeyError('boom')"),
        "attach failed: KeyError: 'boom'",
    ),
    "attach_none": Fault(
        "attach returns nothing",
        _class_method("attach(cls, pid, options)", "pass"),
        "attach returned None, not a driver",
    ),
    "attach_hangs": Fault(
        "attach hangs",
        _class_method("attach(cls, pid, options)", "cls.hang(cls)"),
        "attach takes longer than 5 s",
        hangs=True,
    ),
    "describe_raises": Fault(
        "describe raises",
        _method("describe(self)", "raise OSError('boom')"),
        "describe failed: OSError: boom",
    ),
    "describe_none": Fault(
        "describe returns nothing",
        _method("describe(self)", "pass"),
        "describe returned None, not a ServerDescription",
    ),
    "no_events": Fault(
        "it has no kinds of event",
        _method("describe(self)", "return ServerDescription(name='x', events=())"),
        "it describes no kinds of event",
    ),
    "open_raises": Fault(
        "open raises",
        _method("open(self, server)", "raise RuntimeError('boom')"),
        "open failed: RuntimeError: boom",
    ),
    "same_streams": Fault(
        "two streams of one name",
        _method("open(self, server)", "super().open(server); self.space.add_stream('value')"),
        "'value'",
    ),
    "no_spaces": Fault(
        "it adds no space",
        "class Bad(Fault):\n    def open(self, server):\n        self.server = server\n"
        "    def tick(self):\n        self.server.finish(0)\n",
        "it adds no spaces",
        hangs=True,
    ),
    "gather_raises": Fault(
        "gathering raises", _gather("raise RuntimeError('boom')"), "RuntimeError: boom"
    ),
    "tick_raises": Fault(
        "it raises before it asks for an event",
        _method("tick(self)", "raise RuntimeError('boom')"),
        "RuntimeError: boom",
    ),
    "gather_exits": Fault("gathering exits", _gather("raise SystemExit(3)"), "SystemExit: 3"),
    "gather_recurses": Fault("gathering recurses", _gather("self.gather()"), "RecursionError"),
    "gather_hangs": Fault(
        "gathering hangs", _gather("self.hang()"), "has not finished event 'Clock'", hangs=True
    ),
    "not_a_number": Fault(
        "NaN: unknown, no mistake", _gather("self.stream.set([float('nan'), 1])"), ""
    ),
    "out_of_range": Fault(
        "a value outside of the range",
        _gather("self.stream.data[1] = -7"),
        "space 'Faulty space', stream 'value', tile 1: -7 is outside",
    ),
    "wrong_length": Fault(
        "too many values",
        _gather("self.space.fill({'value': [1, 2, 3]})"),
        "space 'Faulty space', stream 'value': values of shape (3,) for 2 tiles",
    ),
    "texts": Fault("texts for numbers", _gather("self.stream.set(['a', 'b'])"), "stream 'value'"),
    "two_sums": Fault(
        "a summary of two numbers",
        _gather("self.stream.set_summary(1, 2)"),
        "space 'Faulty space', stream 'value': a summary of 2 numbers",
    ),
    "unknown_event": Fault(
        "it finishes an event that does not exist",
        _gather("self.server.finish(5)"),
        "event 5: this driver has the kinds 0 to 0 (Clock)",
    ),
    "never_finished": Fault(
        "it begins events and never finishes them",
        _method("tick(self)", "self.server.should_transmit(0)"),
        "tick began event 'Clock' and did not finish it",
    ),
    "begun_twice": Fault(
        "it begins an event within another",
        _gather("self.server.should_transmit(0)"),
        "event 'Clock' was not finished",
    ),
    "no_clock": Fault(
        "its ticks make no events",
        _method("tick(self)", "pass"),
        "no event",
        hangs=True,
    ),
    "close_raises": Fault(
        "closing raises", _method("close(self)", "raise RuntimeError('boom')"), "RuntimeError: boom"
    ),
}


def install(folder: Path) -> None:
    """Install all of them, and the driver ``steady`` that makes no mistake, as packages are installed."""
    (folder / "gcspy_faulty_base.py").write_text(BASE)
    entries = ["[gcspy.drivers]", "steady = gcspy_faulty_base:Good"]
    for name, fault in FAULTS.items():
        entries.append(f"{name} = gcspy_faulty_{name}:Bad")
        if fault.module:
            text = "from gcspy_faulty_base import *\n\n\n" + fault.source + "\n"
            (folder / f"gcspy_faulty_{name}.py").write_text(text)
    told = folder / f"{PACKAGE.replace('-', '_').replace(' ', '-')}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: gcspy-faulty\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("\n".join(entries) + "\n")
