"""Which way things are placed: numpy's."""

from gcspy_objects.heap.cursors import placed_by_numpy as placed

__all__ = ["placed"]
