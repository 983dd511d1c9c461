# What GCspy uses of numba 0.68, which says that it is typed and leaves its decorators without types.
from collections.abc import Callable
from typing import Any

class _Config:
    CACHE_DIR: str

config: _Config

def njit(
    signature: list[str], *, nogil: bool = ..., cache: bool = ..., error_model: str = ...
) -> Callable[[Any], Any]: ...
