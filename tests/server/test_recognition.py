"""An installed driver that makes mistakes is reported once, with its package, and keeps no other from answering."""

from __future__ import annotations

import sys
import threading
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from gcspy_server import driver_recognition
from gcspy_server.driver_recognition import find_drivers, find_recognisers
from gcspy_server.hosting import recognition
from gcspy_server.hosting.recognition import DriverBench
from tests.waiting import PATIENCE_SECS, wait_until

_GOOD = """
from gcspy_server.api import Driver, Recognition, Specificity
class Good(Driver):
    name = "good"
    @classmethod
    def recognise(cls, pid): return Recognition(runtime="Good", supported=True)
    @classmethod
    def attach(cls, pid, options): return cls()
    def describe(self): ...
    def open(self, server): ...
    def tick(self): ...
"""
_OF_GOOD = "class Bad(Good):\n    @classmethod\n    def recognise(cls, pid): "

FAULTS = {
    "no such class": ("X = 1", "AttributeError"),
    "a syntax error": ("class Bad(:", "SyntaxError"),
    "an import that fails": ("import gcspy_is_not_here", "ModuleNotFoundError"),
    "an exit at import": ("raise SystemExit(3)", "SystemExit"),
    "an error at import": ("1 / 0", "ZeroDivisionError"),
    "no class": ("Bad = 7", "is not a class derived from"),
    "a class that is no driver": ("class Bad: pass", "is not a class derived from"),
    "a half-written driver": (
        "class Bad(Driver): name = 'bad'",
        "does not define attach, describe",
    ),
    "recognise raises": (_OF_GOOD + "raise ValueError(pid)", "ValueError: 1"),
    "recognise exits": (_OF_GOOD + "raise SystemExit(3)", "SystemExit: 3"),
    "recognise returns None": (_OF_GOOD + "return None", "recognise returned None"),
    "recognise returns a text": (_OF_GOOD + "return 'yes'", "a str, not a Recognition"),
    "recognise returns nonsense": (
        _OF_GOOD + "return Recognition(runtime=7, supported=True)",
        "a Recognition whose runtime is 7",
    ),
    "recognise hangs": (_OF_GOOD + "import threading; threading.Event().wait(4)", "longer than"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_driver_is_told_of_once_and_harms_no_other(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, told = FAULTS[fault]
    name = f"faulty_{sorted(FAULTS).index(fault)}"
    (tmp_path / f"{name}.py").write_text(_GOOD + "\n" + text + "\n")
    (tmp_path / f"{name}_good.py").write_text(_GOOD)
    monkeypatch.syspath_prepend(tmp_path)
    entries = {
        "bad": EntryPoint("bad", f"{name}:Bad", "gcspy.drivers"),
        "good": EntryPoint("good", f"{name}_good:Good", "gcspy.drivers"),
    }
    monkeypatch.setattr(recognition, "find_drivers", lambda: entries)
    monkeypatch.setattr(recognition, "_RECOGNISE_SECS", 1.5)
    lines: list[str] = []
    bench = DriverBench(lines.append)
    for _ in range(3):
        assert [one.name for one in bench.recognise(1)] == ["good"]
    (line,) = lines
    assert line.startswith("driver bad: ")
    assert told in line
    assert "\n" not in line
    for module in (name, f"{name}_good"):
        sys.modules.pop(module, None)
    assert threading.current_thread() is threading.main_thread()


def test_time_without_a_processor_does_not_count_against_a_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recognition, "_delay_secs", lambda _thread: 60.0)
    waited = threading.Event()

    def answer() -> bool:
        return waited.wait(60.0)

    threading.Timer(0.1, waited.set).start()
    assert recognition._within(0.01, answer)


def test_the_time_without_a_processor_is_that_of_the_thread() -> None:
    go = threading.Event()
    thread = threading.Thread(target=go.wait)
    assert recognition._delay_secs(thread) == 0.0, "it has not begun"
    thread.start()
    assert 0.0 <= recognition._delay_secs(thread) < PATIENCE_SECS
    go.set()
    thread.join()  # of what Python has of it: the system's may take a moment longer
    wait_until(lambda: recognition._delay_secs(thread) == 0.0, "it has ended")


RECOGNISERS = {
    "right": ("def recognise(pid): return Recognition(runtime='Light', supported=True)", ""),
    "an import that fails": ("import gcspy_is_not_here", "ModuleNotFoundError"),
    "it raises": ("def recognise(pid): raise ValueError(pid)", "ValueError: 1"),
    "it returns None": ("def recognise(pid): return None", "recognise returned None"),
    "it is no function": ("recognise = 7", "TypeError"),
}


@pytest.mark.parametrize("kind", RECOGNISERS)
def test_a_driver_that_announces_a_recogniser_is_not_loaded_to_be_asked(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, told = RECOGNISERS[kind]
    name = f"announcing_{sorted(RECOGNISERS).index(kind)}"
    (tmp_path / f"{name}.py").write_text("raise AssertionError('the driver was loaded')")
    (tmp_path / f"{name}_light.py").write_text(
        f"from gcspy_server.driver_recognition import Recognition\n{text}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    driver = EntryPoint("light", f"{name}:Light", "gcspy.drivers")
    announced = EntryPoint("light", f"{name}_light:recognise", "gcspy.driver_recognition")
    monkeypatch.setattr(recognition, "find_drivers", lambda: {"light": driver})
    monkeypatch.setattr(recognition, "find_recognisers", lambda: {"light": announced})
    lines: list[str] = []
    bench = DriverBench(lines.append)
    found = [[one.recognition.runtime for one in bench.recognise(1)] for _ in range(3)]
    assert name not in sys.modules
    if not told:
        assert (found, lines) == ([["Light"]] * 3, [])
        return
    assert found == [[]] * 3
    (line,) = lines
    assert line.startswith("driver light: ")
    assert told in line


def test_a_package_announces_no_recogniser_for_another_packages_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = EntryPoints(
        [
            EntryPoint("one", "mine.driver:One", "gcspy.drivers"),
            EntryPoint("one", "other.recognition:look", "gcspy.driver_recognition"),
            EntryPoint("two", "mine.recognition:look", "gcspy.driver_recognition"),
        ]
    )
    monkeypatch.setattr(driver_recognition, "installed_entry_points", lambda: entries)
    find_drivers.cache_clear()
    find_recognisers.cache_clear()
    try:
        assert (list(find_drivers()), dict(find_recognisers())) == (["one"], {})
    finally:
        find_drivers.cache_clear()
        find_recognisers.cache_clear()
