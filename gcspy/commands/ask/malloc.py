"""`gcspy malloc`: the heap of a process's C library on one screen, once."""

from __future__ import annotations

import click

from gcspy.options import hold_option, json_option

__all__ = ["command"]


@click.command()
@click.argument("pid", type=click.IntRange(1), metavar="PID")
@hold_option
@json_option
def command(pid: int, hold: bool, as_json: bool) -> None:
    """Show what malloc keeps of a process's memory: in use, cached, free, reclaimable, by arena.

    For programs with the malloc of glibc, in any language. The process needs no preparation, and no
    symbols. Nothing is left in it. "Reclaimable" is what malloc_trim would return to the system.

    Without --hold the process runs while it is read: what changed during the read is unknown. With
    --hold all threads stop for the read, and all figures are of one moment.
    """
    from gcspy.output.malloc_text import print_malloc, report_of_malloc
    from gcspy.output.terminal import say_json

    report = report_of_malloc(pid, hold=hold)
    if as_json:
        say_json(report.as_json())
    else:
        print_malloc(report)
