"""Cost of the views other than plain tiles, at 1,000,000 and 10,000,000 tiles, in a window of 1,600 by 1,000.

A full redraw happens after a choice or a resize; following happens at each event (1 % changed); the
rest when a user asks. Times are processor time of this one process, so that other work on the
machine does not show.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.model import Control, Naming, PaintStyle, Space, Stream
from numpy.typing import NDArray

from gcspy_client.model.compare.difference import codes_of, difference, scale_of, summary_of
from gcspy_client.model.derived_source import DerivedSource
from gcspy_client.model.history.series import SeriesMaker
from gcspy_client.model.palette import Theme, sequential
from gcspy_client.model.renderers import Renderer
from gcspy_client.model.renderers.cell_renderers import TilesRenderer
from gcspy_client.model.renderers.order import order_by
from gcspy_client.model.renderers.registry import find_renderers
from gcspy_client.model.spaces.tile_table import TileTable
from gcspy_client.model.tile_source import StreamSource

__all__ = ["main"]

_STREAMS = (
    Stream(id=0, name="Used", dtype="i4", maximum=32768, paint_style=PaintStyle.ZERO),
    Stream(id=1, name="Objects", dtype="u8", maximum=512),
)


def _space(tiles: int, seed: int) -> SpaceState:
    rng = np.random.default_rng(seed)
    space = SpaceState(Space(id=1, name="heap", streams=_STREAMS))
    none = np.empty(0, dtype="<u4")
    space.resize(
        m.Tiles(
            space=1, count=tiles, old_starts=none, new_starts=none, lengths=none,
            naming=Naming.UNIFORM, base=1 << 40, tile_bytes=32768,
        )
    )  # fmt: skip
    space.streams[0].values[:] = rng.integers(0, 32769, tiles)
    space.streams[1].values[:] = rng.integers(0, 513, tiles)
    space.control.values[:] = Control.USED
    for stream in (*space.streams.values(), space.control):
        stream.known = None
    return space


def _took(action: Callable[[], object], times: int) -> str:
    spans = []
    for _ in range(times):
        began = time.process_time()
        action()
        spans.append((time.process_time() - began) * 1e3)
    return f"{np.median(spans):9.2f} ms, longest {max(spans):9.2f}"


def _follow(
    renderer: Renderer, changes: Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> None:
    where, values = next(changes)
    renderer.space.streams[0].values[where] = values
    event = m.Event(sequence=1, time_nanos=0, event=0, occurrence=1, epoch=1)
    renderer.follow(EventChange(event, {(1, 0): where}))


def _renderers(space: SpaceState, times: int) -> None:
    rng = np.random.default_rng(9)
    changes = [
        (some, rng.integers(0, 32769, len(some)))
        for some in (
            np.unique(rng.integers(0, space.count, space.count // 100)) for _ in range(times)
        )
    ]
    source, palette = StreamSource(_STREAMS[0]), sequential(Theme.DARK)
    orders = {"tiles, in order of Used": order_by(space, source)}
    for name in [*find_renderers(), *orders]:
        kind = find_renderers()[name].load() if name not in orders else TilesRenderer
        renderer = kind(space, source, palette)
        renderer.resize(1600, 1000)
        if isinstance(renderer, TilesRenderer) and name in orders:
            renderer.set_order(orders[name])

        follow = partial(_follow, renderer, iter(changes * 2))
        print(
            f"  {name:<24} drawn {_took(renderer.draw, times)}; an event {_took(follow, times)}",
            flush=True,
        )


def _others(space: SpaceState, other: SpaceState, times: int) -> None:
    used, objects = (StreamSource(stream) for stream in _STREAMS)
    compared = difference(space, other, objects)
    table = TileTable(space, [used, objects])
    derived = DerivedSource("d", "Used / (Objects + 1)", space)

    def evaluate() -> None:
        space.control.sequence += 1  # so that it is worked out again
        derived.tiles(space)

    event = m.Event(sequence=0, time_nanos=0, event=0, occurrence=1, epoch=1)
    for what, action in (
        ("sorted by 32 bits", lambda: table.sort(1)),
        ("sorted by 64 bits, downwards", lambda: table.sort(2, descending=True)),
        ("two states compared", lambda: difference(space, other, objects)),
        (
            "  their codes, scale of 99 %",
            lambda: codes_of(compared, scale_of(compared, share=0.99)),
        ),
        ("  their summary", lambda: summary_of(compared)),
        ("a formula worked out", evaluate),
        (
            "a series' point of all tiles",
            lambda: SeriesMaker(objects).follow(space, EventChange(event)),
        ),
    ):
        print(f"  {what:<34} {_took(action, times)}", flush=True)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tiles", type=int, action="append", help="by default 1,000,000 and 10,000,000"
    )
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    for tiles in options.tiles or (1_000_000, 10_000_000):
        print(f"{tiles:,} tiles")
        space, other = _space(tiles, 1), _space(tiles, 2)
        _renderers(space, options.times)
        _others(space, other, options.times)


if __name__ == "__main__":
    main()
