"""Sizes and durations as people write them."""

from __future__ import annotations

import click
import pytest

from gcspy.output.quantities import Kept, kept_of, size_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10kB", 10_000),
        ("500 kb", 500_000),
        ("1.5MB", 1_500_000),
        ("2GB", 2_000_000_000),
        ("1GiB", 1 << 30),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size
    assert kept_of(text) == Kept(size_bytes=size)


@pytest.mark.parametrize(
    ("text", "secs"), [("90s", 90), ("10min", 600), ("2h", 7200), ("0.5 s", 0.5)]
)
def test_durations(text: str, secs: float) -> None:
    assert kept_of(text) == Kept(nanos=int(secs * 1e9))


@pytest.mark.parametrize(
    "text", ["", "5", "9kB", "-1MB", "1m", "1e9MB", "MB", "0s", "nan", "١00MB", "1M?"]
)
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        size_of(text)
    with pytest.raises(click.BadParameter):
        kept_of(text)
