"""Options that a driver declares as live are settings of the session, and reach the driver at its next event."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

import pytest
from gcspy_drivers.kit import SampledDriver
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import LocalProtocolError

from gcspy_server.api import (
    AttachOptions,
    DriverOption,
    GatherRequest,
    OptionValue,
    Recognition,
    Server,
    StringNames,
)

OPTIONS = (
    DriverOption(name="depth", default=3, about="How deep.", minimum=1, maximum=9, live=True),
    DriverOption(name="whole", default=True, about="Whether all is read.", live=True),
    DriverOption(
        name="order", default="size", about="By what.", choices=("name", "size"), live=True
    ),
    DriverOption(name="path", default="", about="Where."),
)


class Optional(SampledDriver):
    """Notes its options at each event."""

    name = "optional"
    declared_options: ClassVar[tuple[DriverOption, ...]] = OPTIONS

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        return Recognition(runtime="Any", supported=True)

    def start(self) -> None:
        self.seen: list[tuple[OptionValue, ...]] = []
        self.space = self.add_space("Space", names=StringNames(["a"]))
        self.space.add_stream("value")

    def gather(self, request: GatherRequest) -> None:
        assert request.wants(self.space)
        self.seen.append(tuple(self.option(one.name) for one in self.declared_options))
        self.space.reset()


def opened(
    values: Mapping[str, OptionValue], kind: type[Optional] = Optional
) -> tuple[Optional, Server]:
    driver = kind(Process(os.getpid()), AttachOptions(values=values))
    server = driver.describe().server()
    driver.open(server)
    server.add_observer(lambda _event: None)
    return driver, server


def test_a_live_option_is_a_setting_and_the_driver_follows_it() -> None:
    driver, server = opened({"depth": 5, "path": "/x"})
    try:
        driver.tick()
        settings = {one.name: one for one in server.settings}
        assert (settings["depth"].value, settings["depth"].maximum) == (5, 9)
        assert settings["whole"].choices == ("no", "yes")
        assert settings["order"].name_of(settings["order"].value) == "size"
        assert "path" not in settings
        server.set_setting(settings["depth"].id, 9)
        server.set_setting(settings["whole"].id, 0)
        server.set_setting(settings["order"].id, 0)
        driver.tick()
        assert driver.seen == [(5, True, "size", "/x"), (9, False, "name", "/x")]
    finally:
        driver.close()


def test_a_live_option_without_bounds_is_refused() -> None:
    class Unbounded(Optional):
        declared_options: ClassVar[tuple[DriverOption, ...]] = (
            DriverOption(name="depth", default=3, about="How deep.", live=True),
        )

    with pytest.raises(LocalProtocolError, match="option depth: a whole number; a live option is"):
        opened({}, Unbounded)
