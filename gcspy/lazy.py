"""A group of commands, each a module that is imported only when it is called: `gcspy` itself, and groups below it.

Knows names of modules; does not know their purpose.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """A group whose commands are imported on demand.

    Args:
        package: The package of the modules; each has a `command`.
        modules: Their names within the package, in the order in which a newcomer needs them; or, by the
            title under which the help lists them, such names with the first sentence of each command's
            help: listing them then imports none. The last part of a dotted name is the command's name.
        options: Arguments of `click.Group`.

    Attributes:
        summaries: By section and command the first sentence of its help; empty: it is imported for that.
    """

    def __init__(
        self,
        *,
        package: str,
        modules: tuple[str, ...] | dict[str, dict[str, str]],
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._package = package
        sections = (
            modules if isinstance(modules, dict) else {"Commands": dict.fromkeys(modules, "")}
        )
        self.summaries = {
            title: {name.rpartition(".")[2]: summary for name, summary in section.items()}
            for title, section in sections.items()
        }
        self._modules = {
            name.rpartition(".")[2]: name for section in sections.values() for name in section
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in their order."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(
            f"{self._package}.{module.replace('-', '_')}"
        ).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under the titles of their sections."""
        width = max(map(len, self._modules))
        room = formatter.width - 6 - width
        for title, names in self.summaries.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(width), self._short_help(ctx, name, summary, room))
                        for name, summary in names.items()
                    ]
                )

    def _short_help(self, ctx: click.Context, name: str, summary: str, room: int) -> str:
        command = click.Command(name, help=summary) if summary else self.get_command(ctx, name)
        return command.get_short_help_str(room) if command is not None else ""
