"""`gcspy trace`: run a program, and write each allocation and each free of it to an object trace."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gcspy.options import json_option
from gcspy.output.quantities import Kept, kept_of

__all__ = ["command"]

_SAMPLE_BYTES = 16384


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write. Default: the program's name with .gctrace behind it, in this folder.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing trace.")
@click.option(
    "--stacks",
    type=click.Choice(["none", "caller", "full"]),
    default="caller",
    show_default=True,
    help="Site of an allocation. none: not known. caller: the code that called malloc, new or mmap. full: its whole stack (x86-64).",
)
@click.option(
    "--children",
    is_flag=True,
    help="Trace its child processes, too, each into a file with .PID behind its name.",
)
@click.option(
    "--keep-last",
    type=kept_of,
    metavar="TIME",
    help="Keep only the most recent part, such as 90s, 10min or 2h, and what lived at its start. For endless runs.",
)
@click.option(
    "--attach",
    type=int,
    metavar="PID",
    help="Not supported: it is not safe to load code into a running process. Prints what to do instead.",
)
@click.option(
    "--no-names",
    is_flag=True,
    help="Write sites as addresses, without names of functions and lines. Saves time at the end.",
)
@click.option("-m", "module", is_flag=True, help="Run PROGRAM as a module, like python -m.")
@click.option("-c", "code", is_flag=True, help="Run PROGRAM as Python source text, like python -c.")
@click.option(
    "--python",
    default=sys.executable,
    help="Python interpreter of the program: 3.9 to 3.15. Default: the one that runs gcspy.",
)
@click.option(
    "--sample",
    "sample_bytes",
    type=click.IntRange(0, (1 << 31) - 1),
    default=_SAMPLE_BYTES,
    show_default=True,
    metavar="BYTES",
    help="Java programs: trace on average one object per BYTES that a thread allocates. 0: every object, which takes many times as long.",
)
@click.option(
    "--native",
    is_flag=True,
    help="Run PROGRAM as a native program, also if its name ends in .py, or is java.",
)
@json_option
@click.argument("program", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    output: Path | None,
    force: bool,
    stacks: str,
    children: bool,
    keep_last: Kept | None,
    attach: int | None,
    no_names: bool,
    module: bool,
    code: bool,
    python: str,
    sample_bytes: int,
    native: bool,
    as_json: bool,
    program: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Run a program and write each allocation and each free to an object trace.

    \b
      gcspy trace -- ./server --port 80        blocks of malloc, new and mmap, with their callers
      gcspy trace --stacks full -- ./server    the same with whole stacks
      gcspy trace program.py                   Python's objects (3.13 on) or blocks, with lines
      gcspy trace -- java -cp classes Main     samples of Java's objects, with lines (JDK 11 on)
      gcspy objects sites server.gctrace       what lives at the end, by site
      gcspy replay server.gctrace              the heap at any moment, in a window

    A library that is loaded into the program writes to memory that it shares with gcspy; gcspy
    writes the file. If the program is killed, its trace is complete; if gcspy is killed, the
    program keeps running. Programs that are linked statically, or run with other rights (setuid),
    are not traced.

    A summary is printed on standard error when the program ends, and its exit code is the
    program's.
    """
    from gcspy_protocol.errors import CommandError, Unsupported

    from gcspy.recorder.new_file import need_place
    from gcspy.tracer.frame_names import name_frames
    from gcspy.tracer.java_agent import java_agent
    from gcspy.tracer.trace_report import report_as_json, report_as_text
    from gcspy.tracer.traced_run import JavaProgram, PythonProgram, TracedRun, TraceSettings

    if attach is not None:
        raise Unsupported(
            f"process {attach} cannot be traced from now on: code would have to be put into it at a moment that it does not choose",
            found="a running process",
            known="programs that gcspy trace starts",
        )
    if program is None:
        raise CommandError(
            "give a program: gcspy trace -- PROGRAM ARGUMENTS, or gcspy trace SCRIPT"
        )
    name = "code" if code else Path(program).name
    path = output or Path(f"{name}.gctrace")
    need_place(path, replace=force)
    if keep_last is not None and keep_last.nanos is None:
        raise CommandError("--keep-last needs a time, such as 90s, 10min or 2h")
    if module + code + native > 1:
        raise CommandError("-m, -c and --native exclude each other: give one of them")
    settings = TraceSettings(
        output=path,
        stacks=stacks,
        children=children,
        keep_nanos=None if keep_last is None else keep_last.nanos,
    )
    form = "module" if module else "code" if code else "script"
    is_python = module or code or (program.endswith(".py") and not native)
    if is_python and form == "script" and not Path(program).is_file():
        raise CommandError(f"no such file: {program}; give a Python script, or -m MODULE")
    how: PythonProgram | JavaProgram | None = None
    if is_python:
        how = PythonProgram(interpreter=python, form=form)
    elif Path(program).name == "java" and not native:
        how = JavaProgram(agent=java_agent(arguments), sample_bytes=sample_bytes)
    with TracedRun([program, *arguments], settings, how) as run:
        exit_code = run.follow((lambda _definitions: b"") if no_names else name_frames)
        if run.refusal is not None:
            raise Unsupported(
                f"{program} was not traced",
                found=run.refusal,
                known="CPython 3.9 to 3.15 with its global interpreter lock, and HotSpot from JDK 11 on",
            )
        if as_json:
            report_as_json(run.summaries, exit_code)
        else:
            report_as_text(run.summaries, program)
    return exit_code
