"""With a stub where it was requested; without one only where the choice was left to us, and then the reason is given."""

from __future__ import annotations

import os

import pytest
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_drivers.kit.stubbed_driver import StubbedDriver, attach_exactly_or_else
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_server.api import AttachOptions, GatherRequest, Recognition


class Passive(SampledDriver):
    """Reads nothing."""

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        return None

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Passive:
        return Passive(Process(pid), options)

    def start(self) -> None:
        raise NotImplementedError

    def gather(self, request: GatherRequest) -> None:
        raise NotImplementedError


class Exact(StubbedDriver, Passive):
    """Can never be brought in."""

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Passive:
        raise TargetError("it takes no stub")


class Forbidden(StubbedDriver, Passive):
    """May not be brought in."""

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Passive:
        raise NotPermitted("not yours", remedy="ask its owner")


class Gone(StubbedDriver, Passive):
    """Is not there any more."""

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Passive:
        raise TargetGone("it has ended")


def attached(exact: type[StubbedDriver], inject: str) -> str:
    driver = attach_exactly_or_else(
        exact, Passive, os.getpid(), AttachOptions(values={"inject": inject})
    )
    driver.process.close()
    return driver.note


def test_what_was_not_asked_for_is_not_tried() -> None:
    assert attached(Exact, "") == ""


def test_where_the_choice_is_left_to_us_it_is_watched_without_a_stub_and_said_why() -> None:
    assert attached(Exact, "auto") == "No exact events: it takes no stub. "


def test_who_asks_for_a_way_gets_that_or_an_error() -> None:
    with pytest.raises(TargetError, match="it takes no stub"):
        attached(Exact, "agent")


@pytest.mark.parametrize(("kind", "error"), [(Forbidden, NotPermitted), (Gone, TargetGone)])
def test_what_is_gone_or_forbidden_is_not_tried_otherwise(
    kind: type[StubbedDriver], error: type[TargetError]
) -> None:
    with pytest.raises(error):
        attached(kind, "auto")
