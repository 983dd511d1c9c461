"""Whatever keeps a driver from reading its target ends the session, with the reason for those who watch."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone, Unsupported
from gcspy_protocol.messages import Event, State
from gcspy_protocol.model import ControlState

from gcspy.connection.link import connect
from gcspy_server.api import (
    AttachOptions,
    Driver,
    Recognition,
    Server,
    ServerDescription,
    StringNames,
)
from gcspy_server.sampler import reason_to_release, run_driver
from tests.waiting import PATIENCE_SECS


class Failing(Driver):
    """A driver whose third tick fails."""

    name: ClassVar[str] = "failing"

    def __init__(self, error: Exception) -> None:
        self.ticks, self.error = 0, error

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        return Recognition(why_not=f"{pid} is a test")

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Failing:
        return cls(TargetGone(f"process {pid} has ended"))

    def describe(self) -> ServerDescription:
        return ServerDescription(name="test", events=("tick",))

    def open(self, server: Server) -> None:
        server.add_space("hands", names=StringNames(["hour", "minute"]))

    def tick(self) -> None:
        self.ticks += 1
        if self.ticks == 3:
            raise self.error


@pytest.mark.parametrize(
    "error",
    [
        TargetGone("process 7 has ended"),
        NotPermitted("process 7 belongs to root now", remedy="run as root"),
        Unsupported("it became something else", found="a shell", known="CPython"),
        TargetError("process 7 makes no sense"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_target_that_cannot_be_read_any_more_ends_the_session_with_the_reason(
    error: TargetError,
) -> None:
    driver = Failing(error)
    server = driver.describe().server()
    run_driver(driver, server, 1000, threading.Event())
    assert driver.ticks == 3
    assert server._core.flow.ended
    assert server._core.flow.state.reason == str(error)


def test_a_mistake_of_the_driver_is_not_taken_for_the_targets_end() -> None:
    driver = Failing(ZeroDivisionError("one by nothing"))
    server = driver.describe().server()
    with pytest.raises(ZeroDivisionError):
        run_driver(driver, server, 1000, threading.Event())
    assert not server._core.flow.ended


def test_a_driver_that_has_only_what_must_be_written_can_be_paused() -> None:
    """A pause asks twice a second whether the target is alive: a driver need not know of that."""
    driver, stop = Failing(TargetGone("process 7 has ended")), threading.Event()
    assert reason_to_release(driver, stop) == ""
    driver.close()
    stop.set()
    assert reason_to_release(driver, stop) == "the server is stopping"


def test_what_must_be_written_is_named_where_it_is_missing() -> None:
    class Half(Driver):
        name = "half"

    made: Any = Half

    with pytest.raises(TypeError, match=r"attach.*describe.*open.*recognise.*tick"):
        made()


class Counting(Failing):
    """A driver that transmits at each tick."""

    def __init__(self) -> None:
        super().__init__(TargetGone("never"))
        self.ticked = threading.Semaphore(0)

    def open(self, server: Server) -> None:
        self.server = server
        super().open(server)

    def tick(self) -> None:
        if self.server.should_transmit(0):
            self.server.spaces[0].reset()
        self.server.finish(0)
        self.ticked.release()


def test_who_connects_to_a_session_that_nobody_watched_need_not_wait_for_a_slow_clock(
    tmp_path: Path,
) -> None:
    driver, stop = Counting(), threading.Event()
    server = driver.describe().server()
    driver.open(server)
    with server.serve(f"unix:{tmp_path}/s") as listening:
        sampling = threading.Thread(target=run_driver, args=(driver, server, 0.001, stop))
        sampling.start()
        try:
            driver.ticked.acquire()
            with connect(listening.addresses[0]) as link:
                assert any(
                    isinstance(message, Event) for message in iter(lambda: link.receive(20), None)
                )
        finally:
            stop.set()
            sampling.join()


class Dying(Counting):
    """A driver whose target dies on request."""

    def __init__(self) -> None:
        super().__init__()
        self.dead = threading.Event()

    def tick(self) -> None:
        if self.dead.is_set():
            raise TargetGone("process 7 has ended")
        super().tick()

    def alive(self) -> bool:
        return not self.dead.is_set()


def test_a_target_that_ends_while_the_sampling_is_paused_ends_the_session(tmp_path: Path) -> None:
    driver = Dying()
    server = driver.describe().server()
    driver.open(server)
    with server.serve(f"unix:{tmp_path}/s") as listening:
        sampling = threading.Thread(
            target=run_driver, args=(driver, server, 100, threading.Event())
        )
        sampling.start()
        with connect(listening.addresses[0], wants_control=True, pause_at_connect=True) as link:
            states = (
                message.state
                for message in iter(lambda: link.receive(20), None)
                if isinstance(message, State)
            )
            while next(states) is not ControlState.PAUSED:
                pass
            driver.dead.set()
            while next(states) is not ControlState.ENDED:
                pass
        sampling.join(PATIENCE_SECS)
        assert not sampling.is_alive()
