"""The parts of blinker that the leaking programs use."""

from collections.abc import Callable

class Signal:
    def connect(self, receiver: Callable[..., None], *, weak: bool = ...) -> Callable[..., None]: ...
