"""A token of our own for a session on TCP, where the user gave none: in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets

import click

from gcspy_server.address import default_address, runtime_directory

__all__ = ["own_token"]


def own_token(pid: int) -> str:
    """Make a token, write it to a file of mode 0600, and tell the user which.

    Args:
        pid: The target, for the file's name.
    """
    default_address(pid)  # makes the directory, for this user alone
    path = runtime_directory() / f"{pid}.token"
    token = secrets.token_urlsafe(24)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(token + "\n")
    click.echo(f"gcspy: viewers over TCP need the token in {path}:  gcspy view --token-file FILE ADDRESS")
    return token
