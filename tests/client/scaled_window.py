"""The window at the screen's scale, as a process of its own: prints how many sampled tiles have a wrong colour."""

from __future__ import annotations

import sys

import numpy as np
from gcspy_protocol.model import Space, Stream

from gcspy_client.app import application
from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.view.window import MainWindow
from tests.client.feeding import Feed


def main() -> None:
    app = application()
    window = MainWindow(Theme.DARK)
    window.resize(1000, 600)
    window.show()
    window.link.status = LinkStatus(phase=LinkPhase.LIVE)
    heap = Space(
        id=1, name="Heap", main=True, streams=(Stream(id=1, name="Used", dtype="u1", maximum=255),)
    )
    values = np.random.default_rng(1).integers(0, 255, 2000)
    feed = Feed(spaces=(heap,), counts={1: 2000})
    window.take([*feed.bootstrap(), *feed.event({(1, 1): values})])
    app.processEvents()
    canvas = window.spaces.panels[1].canvas
    image = canvas.grab().toImage()
    wrong = 0
    for tile in range(0, 2000, 37):
        x, y, width, height = canvas.picture.layout.rectangle(tile)
        wrong += image.pixel(x + width // 2, y + height // 2) & 0xFFFFFFFF != int(
            canvas.picture.palette.lut[5 + values[tile] * 249 // 255]
        )
        wrong += canvas.tile_at(canvas.rectangle_of(tile).center()) != tile
    sys.stdout.write(
        f"{window.devicePixelRatioF()} {canvas.picture.pixels.shape[1] > canvas.width()} {wrong}\n"
    )
    window.close()


if __name__ == "__main__":
    main()
