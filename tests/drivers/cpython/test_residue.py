"""A busy server that is attached to and detached from again and again misses no request and keeps no residue, by any way in."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from gcspy_drivers.cpython.cooperation.stub_events import GC_END
from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver
from gcspy_drivers.cpython.driver import CPythonDriver

from gcspy_server.api import AttachOptions, Event
from tests.drivers.cpython.answering import (
    SERVER,
    Client,
    files_of,
    residue,
    running,
    skipped_with_old_gdb,
)
from tests.drivers.targets import find_python
from tests.waiting import PATIENCE_SECS

_MORE_RSS_KIB = 1024
"""Largest permitted change of a server's memory; a leak of one page each time would be nearly as much after 200."""


def _asked_meanwhile(client: Client, work: Callable[[], None]) -> float:
    """Do something in another thread, while the server is asked; return the longest that an answer took, in seconds."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # shown by the test, in its own thread
            failed.append(error)

    longest = 0.0
    working = threading.Thread(target=run)
    working.start()
    while working.is_alive():
        before = time.monotonic()
        client.ask()
        longest = max(longest, time.monotonic() - before)
    working.join()
    if failed:
        raise failed[0]
    return longest


def _attach_and_detach(process: subprocess.Popen[str], way: str) -> None:
    events: list[Event] = []
    driver = CPythonDriver.attach(process.pid, AttachOptions(values={"inject": way}))
    assert isinstance(driver, CooperativeDriver) == bool(way), driver
    try:
        server = driver.describe().server()
        server.add_observer(events.append)
        driver.open(server)
        while not any(event.event == GC_END for event in events) and (way or len(events) < 3):
            if isinstance(driver, CooperativeDriver):
                driver.wait(1.0)
            else:
                driver.tick()
    finally:
        driver.close()


def again_and_again(python: str, way: str, times: int) -> str:
    """Attach and detach this often; return the measurements, for a human."""
    with running(python, SERVER) as process, closing(Client(process)) as client:
        for _ in range(2):  # the module of the stub, and what it imports, stay
            _asked_meanwhile(client, lambda: _attach_and_detach(process, way))
            client.ask("how")
        before, asked, began = residue(process, client), client.asked, time.monotonic()
        longest = 0.0
        for _ in range(times):
            longest = max(
                longest, _asked_meanwhile(client, lambda: _attach_and_detach(process, way))
            )
            client.ask("how")
        took = time.monotonic() - began
        after = residue(process, client)
        more = after.rss_kib - before.rss_kib
        assert (
            dataclasses.replace(
                after, objects=before.objects, rss_kib=before.rss_kib, files=before.files
            )
            == before
        )
        assert after.own_callbacks
        # Other tests may be bringing stubs in at this moment: theirs go by themselves, and ours would stay.
        more_files, until = after.files - before.files, time.monotonic() + PATIENCE_SECS
        while more_files and time.monotonic() < until:
            time.sleep(0.02)
            more_files &= files_of(process)
        assert not more_files
        assert after.objects <= before.objects + 20, (
            f"{after.objects - before.objects} more objects after {times} times"
        )
        assert more <= _MORE_RSS_KIB, f"{more} KiB more after {times} times"
        answers = client.asked - asked
    return (
        f"{way or 'passive'}: attached {times} times, {took / times * 1000:.0f} ms each; {answers} requests, none missed, the longest "
        f"{longest * 1000:.0f} ms; {more:+d} KiB, {after.objects - before.objects:+d} objects"
    )


def _python_for(way: str, version: str) -> str:
    found = find_python(version)
    if found is None:
        pytest.skip(
            f"no Python {version} on PATH or in ~/.pyenv/versions: {way or 'passive'} is not tested on it"
        )
    if way == "gdb" and shutil.which("gdb") is None:
        pytest.skip("there is no gdb here: bringing a stub in is not tested")
    return found


WAYS = [
    ("", "3.11"),
    ("", "3.15"),
    ("gdb", "3.11"),
    ("gdb", "3.13"),
    ("remote-exec", "3.14"),
    ("remote-exec", "3.15"),
]


@pytest.mark.parametrize(("way", "version"), [("", "3.13"), *WAYS[2:]])
def test_attaching_and_detaching_leaves_nothing_and_misses_no_request(
    way: str, version: str
) -> None:
    with skipped_with_old_gdb():
        again_and_again(_python_for(way, version), way, 2)


@pytest.mark.soak
@pytest.mark.parametrize(("way", "version"), WAYS)
def test_two_hundred_times_too(way: str, version: str) -> None:
    print(again_and_again(_python_for(way, version), way, 200))
