from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

def sync(loop: Any, func: Callable[..., Coroutine[Any, Any, _T]], *args: Any) -> _T: ...
