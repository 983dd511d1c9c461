"""`gcspy count`: run a Python or Java program, and count how often each of its allocation sites ran."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from gcspy.options import json_option, top_option

__all__ = ["command"]


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", is_flag=True, help="Run PROGRAM as a module, like python -m.")
@click.option("-c", "code", is_flag=True, help="Run PROGRAM as Python source text, like python -c.")
@click.option(
    "--python",
    default=sys.executable,
    help="Python interpreter of the program: 3.11 to 3.14. Default: the one that runs gcspy.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="MODULE",
    help="Module or package of a library to count in, too; * for all. Repeatable. Default: only modules of the program.",
)
@click.option(
    "--sites",
    type=click.Choice(["definite", "wide"]),
    default="wide",
    show_default=True,
    help="definite: instructions that always allocate. wide: also those that may, such as calls and operators.",
)
@click.option(
    "--plan",
    type=click.Choice(["site", "block", "paths", "tree"]),
    default="tree",
    show_default=True,
    help="Places of the counters. site: one for each site. block: one for each basic block. paths: one for each path (DuckTracks). tree: paths first, then a spanning tree from observed counts. Java: one for sites that always run together, or with site one for each.",
)
@click.option(
    "--graph",
    metavar="FUNCTION",
    help="Write the flow graph of this function, with its counters. Its qualified name, such as Class.method.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="SVG file for --graph.",
)
@click.option(
    "--attach",
    "pid",
    type=click.IntRange(1),
    metavar="PID",
    help="Count in this running JVM instead of starting a program. For Python: gcspy attach PID --count.",
)
@click.option(
    "--over",
    "over_secs",
    type=click.FloatRange(0.1, 86_400),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="With --attach: how long to count. Ctrl-C ends it earlier.",
)
@top_option(100_000)
@json_option
@click.argument("program", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    module: bool,
    code: bool,
    python: str,
    include: tuple[str, ...],
    sites: str,
    plan: str,
    graph: str | None,
    output: Path | None,
    pid: int | None,
    over_secs: float,
    top: int,
    as_json: bool,
    program: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Run a Python or Java program and count its allocations by line.

    PROGRAM is a Python program, or `java` with its arguments. --attach counts in a running JVM.

    Counts are exact, also after exceptions and with threads. They are executions of the lines' own
    instructions: a call counts once, whatever the function allocates. Allocations inside functions
    written in C are not counted, nor are those of forked child processes.

    The table is printed on standard error when the program ends, and its exit code is the
    program's. With --json all sites are one JSON object on standard error.
    """
    from gcspy_protocol.errors import CommandError

    from gcspy.site_counts.counted_jvm import count_running_jvm, is_jvm, run_counted_jvm
    from gcspy.site_counts.counted_run import CountSettings, run_counted
    from gcspy.site_counts.site_table import print_as_json, print_as_text, write_graph

    if (pid is None) == (program is None):
        raise click.UsageError("give a program, or --attach PID")
    if pid is not None or (program is not None and not (module or code) and is_jvm(program)):
        if graph is not None:
            raise click.UsageError("--graph is for Python programs: omit it")
        counted = (
            count_running_jvm(pid, over_secs, shares=plan != "site")
            if pid is not None
            else run_counted_jvm(str(program), arguments, shares=plan != "site")
        )
        show = partial(print_as_json, counted) if as_json else partial(print_as_text, counted, top)
        show()
        return counted.exit_code
    assert program is not None
    if module and code:
        raise CommandError("-m and -c exclude each other: give one of them")
    if (graph is None) != (output is None):
        raise CommandError("--graph FUNCTION and --output FILE belong together: give both")
    form = "module" if module else "code" if code else "script"
    settings = CountSettings(plan=plan, sites=sites, include=include, graph=graph)
    counted = run_counted(python, form, program, arguments, settings)
    if graph is not None and output is not None:
        write_graph(counted, graph, output)
    if as_json:
        print_as_json(counted)
    else:
        print_as_text(counted, top)
    return counted.exit_code
