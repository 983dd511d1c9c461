"""Values of a parameter of which the usual run tries some, and `make soak` all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

__all__ = ["matrix"]


def matrix(values: Iterable[Any], *, usual: Iterable[Any]) -> list[ParameterSet]:
    """Mark those that are not usual as ``matrix``.

    Args:
        values: All of them: values, or tuples of values.
        usual: Those that the usual run tries: at least one of each kind that could fail alone.
    """
    wanted = list(usual)
    return [
        pytest.param(
            *(one if isinstance(one, tuple) else (one,)),
            marks=() if one in wanted else pytest.mark.matrix,
        )
        for one in values
    ]
