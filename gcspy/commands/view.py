"""`gcspy view`: a window on a served session."""

from __future__ import annotations

from pathlib import Path

import click
from gcspy_protocol.address import Address, TcpAddress, parse_address

from gcspy.gui import load_window, require_window
from gcspy.hosts.launcher import front_door
from gcspy.options import class_options, language_option, read_token, theme_option, token_option
from gcspy.storage.file_system import shown_address
from gcspy_client.interruption import interruption_held_back

__all__ = ["command"]


@click.command()
@click.argument("address")
@token_option
@language_option
@theme_option
@click.option(
    "--watch-only",
    is_flag=True,
    help="Do not request control: no pause, step or filters.",
)
@click.option(
    "--follow/--roam",
    "following",
    default=False,
    help="Follow the view of the class's leader, or move freely (default). Shift+F switches.",
)
@class_options
def command(
    address: str,
    token_file: Path | None,
    theme: str | None,
    watch_only: bool,
    following: bool,
    person: str,
    successor: str,
) -> int:
    """Open a window on a served session.

    ADDRESS is HOST:PORT, unix:/PATH, or tls:HOST:PORT#FINGERPRINT, as `gcspy attach` prints it.
    """
    if "://" in address:
        raise click.UsageError(
            f"{shown_address(address)} is not a session; if it is a recording, gcspy replay opens it"
        )
    where = parse_address(address)
    require_window()
    with interruption_held_back():
        load_window()
        from gcspy_client.app import run_window
        from gcspy_client.model.attendance import ClassOptions

    token = read_token(token_file, ask=isinstance(where, TcpAddress))
    return run_window(
        str(where),
        token=token,
        theme=theme,
        control=not (watch_only or following),
        front=front_door(),
        remember=True,
        class_options=ClassOptions(
            person=person, following=following, successor=successor, addresses=_shared(where)
        ),
    )


def _shared(where: Address) -> tuple[str, ...]:
    """The address, if others can join there, too."""
    return (str(where),) if isinstance(where, TcpAddress) else ()
