from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gcspy_replay.file import ChunkRule, MemorySource, Recording
from gcspy_replay.player import PlaybackStart, PlayerThread, TraceQueryService, serve_recording

from gcspy_session.options import SessionOptions
from tests.replay.recorded import small
from tests.replay.watching import Watcher
from tests.server.conftest import ended as ended
from tests.server.conftest import socket_directory as socket_directory

DATA = small(40, rule=ChunkRule(events=6, weight=0))
"""A recording of 40 events."""


@pytest.fixture
def play(socket_directory: Path) -> Iterator[Callable[..., PlayerThread]]:
    """Play a recording; everything is closed at the end."""
    open_ones: list[PlayerThread] = []

    def start(
        recording: bytes | Recording = DATA,
        beginning: PlaybackStart | None = None,
        options: SessionOptions | None = None,
        growing: bool | None = None,
        query_service: TraceQueryService | None = None,
    ) -> PlayerThread:
        address = f"unix:{socket_directory}/{len(open_ones)}.sock"
        if isinstance(recording, bytes):
            recording = Recording([MemorySource(recording)])
        playing = serve_recording(
            recording,
            address,
            beginning=beginning,
            options=options,
            growing=growing,
            query_service=query_service,
        )
        open_ones.append(playing)
        return playing

    yield start
    for playing in open_ones:
        playing.close()


@pytest.fixture
def watch() -> Iterator[Callable[..., Watcher]]:
    """Connect watchers; all are closed at the end."""
    watchers: list[Watcher] = []

    def start(
        playing: PlayerThread,
        data: bytes = DATA,
        name: str = "watcher",
        *,
        control: bool = False,
        person: str = "",
        following: bool = False,
    ) -> Watcher:
        recording = Recording([MemorySource(data)])
        address = playing.addresses[0]
        watcher = Watcher(
            address, recording, name, control=control, person=person, following=following
        )
        watchers.append(watcher)
        return watcher

    yield start
    for watcher in watchers:
        watcher.link.close()
        watcher.recording.close()
