"""The commands that a window may start, from its start page.

Knows the commands and the sidecar; does not know windows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gcspy_protocol.errors import CommandError

from gcspy.connection.session import somebody_listens
from gcspy.hosts.playback_host import PlayingOptions, default_playing_address
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import command_of_sidecar, first_line
from gcspy_client.model.shell.launcher import FrontDoor, Launch, Offer
from gcspy_session.network.address import default_address

__all__ = ["front_door"]

_GCSPY = (sys.executable, "-P", "-m", "gcspy")


def front_door() -> FrontDoor:
    """The commands that a window of this program can start."""
    return FrontDoor(
        processes=(*_GCSPY, "ps", "--watch"),
        everything="--all",
        attach=_attach,
        attach_with=_attach,
        play=_play,
        demo=Launch(
            command=command_of_sidecar(),
            line=first_line(ServingOptions(pid=0, linger=True)),
            title="Starting the demo",
        ),
        samples=_samples,
        another=(*_GCSPY, "start"),
    )


def _attach(pid: int, values: tuple[str, ...] = (), drivers: tuple[str, ...] = ()) -> Launch | str:
    address = default_address(pid)
    if somebody_listens(address):
        if values or drivers:
            raise CommandError(
                f"process {pid} is already monitored, with the driver and options of that session: attach without choosing any to join it"
            )
        return str(address)
    options = ServingOptions(
        pid=pid, listen=(str(address),), linger=True, values=values, drivers=drivers
    )
    return Launch(
        command=command_of_sidecar(), line=first_line(options), title=f"Attaching to process {pid}"
    )


def _play(files: tuple[Path, ...]) -> Launch:
    options = PlayingOptions(files=tuple(map(str, files)), listen=(str(default_playing_address()),))
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    title = f"Opening {files[0].name}{more}"
    return Launch(command=command_of_sidecar(), line=first_line(options), title=title, files=files)


def _samples() -> Sequence[Offer]:
    from gcspy_objects.samples import sample_traces
    from gcspy_replay.samples import samples

    recordings = [Offer(sample.path, sample.title, sample.about) for sample in samples()]
    return recordings + [Offer(*trace) for trace in sample_traces()]
