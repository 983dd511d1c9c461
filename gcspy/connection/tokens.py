"""A token of our own for a session on TCP, if the user gave none: in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcspy.output.terminal import say
from gcspy_session.network.address import default_address, runtime_directory

__all__ = ["own_token"]


@contextmanager
def own_token(pid: int) -> Iterator[str]:
    """Make a token, keep it in a file of mode 0600 during the body of the `with`, and print its path.

    Args:
        pid: The target, for the file's name. Our own number is in it too: a second process that
            fails to serve the same target must not remove the token of the first.
    """
    default_address(pid)  # makes the directory, for this user alone
    path = runtime_directory() / f"{pid}-{os.getpid()}.token"
    _sweep(path.parent)
    token = secrets.token_urlsafe(24)
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(token + "\n")
    try:
        say(
            f"gcspy: clients over TCP need the token in {path}:  gcspy view --token-file FILE ADDRESS"
        )
        yield token
    finally:
        path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove the tokens of processes that were killed before they could."""
    for path in folder.glob("*-*.token"):
        owner = path.stem.rpartition("-")[2]
        if owner == str(os.getpid()) or not os.path.isdir(f"/proc/{owner}"):
            path.unlink(missing_ok=True)
