"""The `gcspy` command.

Each command is one module in `gcspy.commands`, imported only when it is called, so that a command
that needs no Qt never loads it. Each module imports its dependencies in its function, so that help
and usage errors load neither numpy nor trio. Errors of ours become one line on standard error and
an exit code, here and nowhere else.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

import click
from gcspy_protocol.errors import GCspyError
from gcspy_protocol.text.visible import Lines

from gcspy.exit_codes import EXIT_CODE_HELP, ExitCode, exit_code_of
from gcspy.lazy import LazyGroup
from gcspy.output.terminal import say, say_aside

__all__ = ["gcspy", "main"]

_COMMANDS = {
    "Watch": {
        "start": "Open the start page.",
        "ps": "List the processes that can be monitored.",
        "attach": "Attach to the running process PID, or to a server of GCspy 1.0 (2002), and show its heap.",
        "run": "Start a program and show its heap with exact events.",
        "view": "Open a window on a served session.",
        "export-metrics": "Export numbers about the heaps of this host to Prometheus or OpenTelemetry.",
        "tail": "Print events as text: of a session, a process or a recording.",
    },
    "Record and play": {
        "record": "Record a session or a process to a file.",
        "trace": "Run a program and write each allocation and each free to an object trace.",
        "replay": "Play a recording, an object trace or a lesson in a window.",
        "screenshot": "Write a picture of the window to a PNG file.",
        "export": "Export to HTML, CSV, Parquet, MCAP, PNG files, GIF, or a trace of GCspy 1.0.",
    },
    "Ask": {
        "ask.why": "Show what memory is for, who holds it, and why it grows.",
        "ask.malloc": "Show what malloc keeps of a process's memory: in use, cached, free, reclaimable, by arena.",
        "ask.working-set": "Show how much of a process's memory is used within some seconds.",
        "ask.types": "Show object counts and bytes by type, from one sample.",
        "ask.holders": "Show who holds objects in memory.",
        "ask.dominators": "Show the objects that keep most memory alive.",
        "ask.growth": "Show which types grew between two events.",
        "compare": "Compare two recordings stream by stream.",
        "objects": "Query the objects of an object trace.",
        "ask.count": "Run a Python or Java program and count its allocations by line.",
    },
    "Teach": {
        "demo": "Show a demo program, simulate a collector, or take a lesson.",
        "lesson": "Verify and mark students' code, check lessons, and export them as HTML files.",
    },
    "Files": {
        "files.info": "Summarise a recording.",
        "files.features": "Write a table with a row of features for each of many recordings.",
        "fleet": "Query a table of features of many recordings.",
        "files.verify": "Check every byte of a recording.",
        "files.repair": "Recover a damaged recording into a new file.",
        "files.cut": "Copy a range of events to a new file.",
        "files.pack": "Compress a recording, to keep or to send it.",
        "files.convert": "Convert an object trace, or a trace of GCspy 1.0, to a recording.",
    },
    "Extend": {
        "drivers": "List the installed drivers, or the options of the driver NAME.",
        "check-driver": "Check the driver NAME against the process PID, and show what it would display.",
    },
}
"""Module and summary of each command; the summary is the first sentence of its help."""


def _is_built(package: str, folder: str, name: str) -> bool:
    """Return whether a library in C is there and enabled; loads neither its package's modules, nor numpy, nor the library."""
    import importlib.util
    from pathlib import Path

    from gcspy_compiled.libraries import find_library

    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return False
    return find_library(name, Path(spec.origin).parent / folder) is not None


def _say_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version  # 30 ms, for who asks

    try:
        found = version("gcspy-heap")
    except PackageNotFoundError:
        found = "not installed: run from a source tree"
    say(f"gcspy, version {found}")
    reason = "the library in C is not built or disabled"
    in_c = _is_built("gcspy_protocol", "compiled", "gcspy-streams")
    say(f"values of spaces are encoded {'in C' if in_c else f'by numpy: {reason}'}")
    in_c = _is_built("gcspy_objects", "graph/compiled", "gcspy-graph")
    by_numba = f"by loops that are compiled when they are first needed: {reason}"
    say(f"references are followed {'in C' if in_c else by_numba}")
    context.exit()


def _say_include_folder(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from gcspy_drivers.published.include_folder import include_folder

    say(str(include_folder()))
    context.exit()


@click.group(
    cls=LazyGroup,
    package="gcspy.commands",
    modules=_COMMANDS,
    epilog=EXIT_CODE_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Show the version and exit.",
)
@click.option(
    "--include-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_include_folder,
    help="Show the folder of gcspy.h, for a C compiler's option -I, and exit.",
)
@click.pass_context
def gcspy(context: click.Context) -> int | None:
    """Show the heap of a running process, live.

    Without a command, gcspy opens the start page.

    \b
      gcspy ps                      list the processes that can be monitored
      gcspy attach PID              show the heap of a process in a window
      gcspy run SCRIPT              start a program, with exact events
      gcspy record PID -o FILE      record the session to a file
      gcspy replay FILE             play the recording in the same window
    """
    if context.invoked_subcommand is not None:
        return None
    from gcspy.gui import has_window

    if not has_window():
        say(Lines.of(context.get_help()))
        return ExitCode.USAGE
    started: int = context.invoke(importlib.import_module("gcspy.commands.start").command)
    return started


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; None takes the process's own.

    Returns:
        The exit code; `gcspy.exit_codes` lists them.
    """
    # Ctrl-C and SIGTERM end us in the same clean way; neither ever reaches the target.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = gcspy.main(args=arguments, prog_name="gcspy", standalone_mode=False)
        return result if isinstance(result, int) else ExitCode.OK
    except GCspyError as error:
        say_aside(str(error))
        return exit_code_of(error)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader (such as head) has closed the pipe. Python would report that again when it
        # flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
