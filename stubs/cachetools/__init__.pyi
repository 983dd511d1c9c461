"""The parts of cachetools that the leaking programs use."""

from collections.abc import Callable, MutableMapping
from typing import TypeVar

_F = TypeVar("_F", bound=Callable[..., object])

def cached(cache: MutableMapping[object, object]) -> Callable[[_F], _F]: ...
