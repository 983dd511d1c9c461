"""An animated GIF of given pictures. Needs Pillow.

One palette for the whole animation: a palette a frame makes flat areas flicker. It is chosen when all
frames are known, so they wait in a temporary file, compressed. Colours of large areas, and colours far
from all others, come first; nothing is dithered, so a tile has one colour.

Knows pixels and times; does not know the content of the pictures, nor how they were painted.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

__all__ = ["LEAST_CENTIS", "MOST_SHOWN_CENTIS", "GifWriter", "choose_palette", "frame_centis"]

Progress = Callable[[int, int], None]

LEAST_CENTIS = 2
"""Shortest time of a frame, in hundredths of a second: browsers show a shorter one for ten."""

MOST_SHOWN_CENTIS = 360_000
"""An hour: a frame is shown no longer. Each eleven minutes take a frame of the file, and two events may be centuries apart."""

_MOST_CENTIS = 0xFFFF
_KEPT = 255
_MOST_COLOURS = 255
"""Entries of the palette; the last of 256 means "as in the frame before"."""

_CANDIDATES = 1 << 15
_HEAD = struct.Struct("<6sHHBBB")


class _Waiting(NamedTuple):
    """A frame in the temporary file."""

    offset: int
    size: int
    centis: int


def frame_centis(
    times_nanos: Sequence[int], *, speed: float = 1.0, last_secs: float = 1.0
) -> list[int]:
    """How long each frame is shown, in hundredths of a second.

    If a frame is lengthened because it is too short for the format, the following ones are
    shortened, so that the animation keeps its pace as far as possible. No frame is shown longer
    than an hour.

    Args:
        times_nanos: Time of each frame's event, in order.
        speed: How many times faster than that.
        last_secs: How long the last one is shown.
    """
    shown: list[int] = []
    debt = 0.0
    for before, after in pairwise(times_nanos):
        wanted = max(0, after - before) / speed / 1e7 + debt
        centis = max(LEAST_CENTIS, round(min(wanted, MOST_SHOWN_CENTIS)))
        debt = min(wanted, MOST_SHOWN_CENTIS) - centis
        shown.append(centis)
    return [*shown, max(LEAST_CENTIS, round(last_secs * 100))]


def choose_palette(
    colours: NDArray[np.uint32], pixels: NDArray[np.float64], most: int = _MOST_COLOURS
) -> NDArray[np.uint32]:
    """The colours by which an animation is painted.

    Args:
        colours: Shape (n,), each 0x00RRGGBB, no two alike.
        pixels: Shape (n,): how many pixels have each.
        most: Most colours to choose.

    Returns:
        Choose all colours if there are few enough; otherwise those that are frequent and distant
        from the others chosen.
    """
    if len(colours) <= most:
        return colours.copy()
    if len(colours) > _CANDIDATES:
        common = np.argpartition(pixels, -_CANDIDATES)[-_CANDIDATES:]
        colours, pixels = colours[common], pixels[common]
    points = _points(colours)
    # The root: a rare colour that is distant from all others, such as that of one marked tile,
    # needs an entry too.
    weights = np.sqrt(pixels)
    chosen = np.empty(most, dtype=np.int64)
    distances = np.full(len(colours), np.inf)
    following = int(np.argmax(weights))
    for i in range(most):
        chosen[i] = following
        distances = np.minimum(distances, ((points - points[following]) ** 2).sum(axis=1))
        following = int(np.argmax(weights * distances))
    return colours[chosen]


def _points(colours: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Shape (n, 3): red, green, blue, weighed as eyes do."""
    parts = np.stack([(colours >> shift) & 0xFF for shift in (16, 8, 0)], axis=1)
    return (parts * np.sqrt([0.30, 0.59, 0.11])).astype(np.float32)


def _nearest(colours: NDArray[np.uint32], palette: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Shape (n,): the entry of the palette nearest to each colour."""
    entries = _points(palette)
    found = np.empty(len(colours), dtype=np.uint8)
    for start in range(0, len(colours), 4096):
        some = _points(colours[start : start + 4096])
        found[start : start + 4096] = (
            ((some[:, None, :] - entries[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        )
    return found


class GifWriter:
    """Takes frames, and writes them when all are there.

    Args:
        size: Width and height of each in pixels.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self._width, self._height = size
        self._spool: IO[bytes] = tempfile.TemporaryFile(prefix="gcspy-gif-")  # noqa: SIM115  # closed by __exit__
        self._pack = zstandard.ZstdCompressor(level=1)
        self._frames: list[_Waiting] = []
        self._colours = np.empty(0, dtype=np.uint32)
        self._pixels = np.empty(0, dtype=np.float64)
        self._before: NDArray[np.uint32] | None = None

    def __enter__(self) -> GifWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._spool.close()

    def add(self, pixels: NDArray[np.uint32], centis: int) -> None:
        """Take a frame.

        Args:
            pixels: Shape (height, width), each 0x00RRGGBB.
            centis: How long it is shown, in hundredths of a second.
        """
        if self._before is not None and np.array_equal(pixels, self._before):
            last = self._frames[-1]
            self._frames[-1] = last._replace(centis=last.centis + centis)
            return
        self._before = pixels
        data = self._pack.compress(np.ascontiguousarray(pixels).tobytes())
        self._frames.append(_Waiting(self._spool.seek(0, 2), len(data), centis))
        self._spool.write(data)
        # Pictures of windows are long runs of one colour: their beginnings are a tenth of all pixels.
        flat = pixels.reshape(-1)
        starts = np.concatenate(([0], np.flatnonzero(flat[1:] != flat[:-1]) + 1))
        lengths = np.diff(np.append(starts, flat.size))
        found, which = np.unique(np.concatenate((self._colours, flat[starts])), return_inverse=True)
        self._pixels = np.bincount(which, weights=np.concatenate((self._pixels, lengths))).astype(
            np.float64
        )
        self._colours = found

    def write(self, path: Path, progress: Progress | None = None) -> int:
        """Write the animation; it repeats forever.

        Returns:
            How many different frames it has.

        Raises:
            OSError: The file cannot be written.
        """
        palette = choose_palette(self._colours, self._pixels)
        entry_of = np.zeros(1 << 24, dtype=np.uint8)
        entry_of[self._colours] = _nearest(self._colours, palette)
        table = np.zeros((256, 3), dtype=np.uint8)
        for i, shift in enumerate((16, 8, 0)):
            table[: len(palette), i] = (palette >> shift) & 0xFF
        with path.open("wb") as file:
            file.write(
                _HEAD.pack(b"GIF89a", self._width, self._height, 0xF7, 0, 0) + table.tobytes()
            )
            file.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
            before: NDArray[np.uint8] | None = None
            for i, waiting in enumerate(self._frames):
                entries = entry_of[self._read(waiting)]
                self._write_frame(file, entries, before, waiting.centis)
                before = entries
                if progress is not None:
                    progress(i + 1, len(self._frames))
            file.write(b"\x3b")
        return len(self._frames)

    def _read(self, waiting: _Waiting) -> NDArray[np.uint32]:
        self._spool.seek(waiting.offset)
        plain = zstandard.ZstdDecompressor().decompress(self._spool.read(waiting.size))
        return np.frombuffer(plain, dtype=np.uint32).reshape(self._height, self._width)

    def _write_frame(
        self,
        file: IO[bytes],
        entries: NDArray[np.uint8],
        before: NDArray[np.uint8] | None,
        centis: int,
    ) -> None:
        """Write the difference from the previous frame: the rectangle around it, without the equal pixels."""
        left, top, part = 0, 0, entries
        if before is not None:
            differs = entries != before
            rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
            if len(rows):
                top, left = int(rows[0]), int(columns[0])
                where = slice(top, int(rows[-1]) + 1), slice(left, int(columns[-1]) + 1)
                part = np.where(differs[where], entries[where], np.uint8(_KEPT))
            else:  # it differed in colours that the palette does not distinguish
                part = np.full((1, 1), _KEPT, dtype=np.uint8)
        while centis > _MOST_CENTIS:
            self._write_part(file, part, left, top, _MOST_CENTIS)
            part = np.full((1, 1), _KEPT, dtype=np.uint8)
            centis -= _MOST_CENTIS
        self._write_part(file, part, left, top, centis)

    @staticmethod
    def _write_part(
        file: IO[bytes], part: NDArray[np.uint8], left: int, top: int, centis: int
    ) -> None:
        image = Image.fromarray(np.ascontiguousarray(part))
        options = {"duration": centis * 10, "transparency": _KEPT, "disposal": 1}
        file.write(b"".join(GifImagePlugin.getdata(image, (left, top), **options)))
