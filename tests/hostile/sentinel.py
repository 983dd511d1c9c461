"""A picture that reports whether a process has opened it, through the kernel (inotify)."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import TracebackType

import numpy as np

from gcspy_client.model.history.export import png_of

__all__ = ["Sentinel"]

_OPENED = 0x20  # IN_OPEN of <sys/inotify.h>


class Sentinel:
    """The picture; a context manager.

    Args:
        path: Where it is made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(png_of(np.zeros((1, 1), dtype=np.uint32)))
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._fd >= 0, os.strerror(ctypes.get_errno())
        watch = libc.inotify_add_watch(self._fd, os.fsencode(path), _OPENED)
        assert watch >= 0, os.strerror(ctypes.get_errno())

    def opened(self) -> bool:
        """Whether a process has opened it since the last call."""
        try:
            return bool(os.read(self._fd, 1 << 16))
        except BlockingIOError:
            return False

    def __enter__(self) -> Sentinel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)
