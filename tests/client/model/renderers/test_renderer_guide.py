"""docs/adding-a-renderer.md shows code that is really there, and that draws."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.model import Stream

from gcspy_client.model.palette import LOW, Theme, sequential
from gcspy_client.model.renderers import Renderer
from gcspy_client.model.tile_source import StreamSource
from tests.client.feeding import space_state

_ROOT = Path(__file__).parents[4]
_GUIDE = _ROOT / "docs" / "adding-a-renderer.md"
_EXAMPLE = _ROOT / "docs" / "examples" / "spiral.py"
_BLOCKS = re.findall(r"^```python (\S+)\n(.*?)^```$", _GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def example() -> type[Renderer]:
    """Load the class as another package would have it."""
    spec = importlib.util.spec_from_file_location("spiral_example", _EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: type[Renderer] = module.SpiralRenderer
    assert issubclass(found, Renderer)
    return found


def test_the_guide_shows_code() -> None:
    assert len(_BLOCKS) >= 3
    assert "```python\n" not in _GUIDE.read_text(), (
        "a block of Python names the file that it stands in"
    )


@pytest.mark.parametrize(
    ("path", "code"), _BLOCKS, ids=[str(number) for number in range(len(_BLOCKS))]
)
def test_a_block_of_the_guide_stands_in_its_file(path: str, code: str) -> None:
    assert code in (_ROOT / path).read_text()


@pytest.mark.parametrize("count", [0, 1, 9, 24, 25, 26, 1000])
def test_the_example_draws_each_tile_once(count: int) -> None:
    stream = Stream(id=0, name="Used", dtype="i4", maximum=249)
    palette = sequential(Theme.DARK)
    space = space_state(stream, np.arange(count, dtype=np.int32) % 250)
    renderer = example()(space, StreamSource(stream), palette)
    renderer.resize(7, 5)
    assert renderer.pixels.shape == (5, 5)
    places = [(x, y) for y in range(5) for x in range(5)]
    found = np.concatenate([renderer.tiles_at(x, y) for x, y in places])
    assert sorted(found.tolist()) == list(range(count))
    assert not len(renderer.tiles_at(5, 0))
    if count:
        assert renderer.tiles_at(2, 2)[0] == 0, "in the middle"
        tiles = renderer.tiles_at(2, 2)
        assert renderer.pixels[2, 2] == palette.lut[LOW + int(tiles[-1]) % 250]
