"""`gcspy drivers`: the installed drivers, and their options."""

from __future__ import annotations

import click

from gcspy.output.terminal import say

__all__ = ["command"]


@click.command()
@click.argument("name", required=False, default="")
def command(name: str) -> None:
    """List the installed drivers, or the options of the driver NAME.

    Set an option with --option NAME=VALUE when you attach to a process or start a program.
    """
    from gcspy.connection.target import installed_drivers

    for driver in installed_drivers(name):
        say(f"{driver.name}  ({driver.package})")
        if driver.startable:
            say(f"  gcspy run starts {driver.startable}")
        if name and not driver.options:
            say("  no options")
        for option in driver.options:
            default = repr(option.default) if option.default == "" else str(option.default)
            say(f"  --option {option.name}={default}: {option.about}")
            say(f"      {option.bounds_text}")
