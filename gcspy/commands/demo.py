"""`gcspy demo`: shows a real program that is part of GCspy, a simulated collector, or a lesson, in a window."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.address import TcpAddress, UnixAddress, parse_address

from gcspy.connection.tokens import own_token
from gcspy.demo.demo_process import running_workload
from gcspy.gui import has_display, require_gui, require_window
from gcspy.hosts.launcher import front_door
from gcspy.hosts.process_host import LONGEST_HOLD_SECS, ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from gcspy.hosts.simulation_host import SimulatingOptions, fields_of_lesson, simulate
from gcspy.hosts.stop_signals import stop_at_signals
from gcspy.options import (
    language_option,
    listen_option,
    no_window_option,
    read_token,
    theme_option,
    token_option,
    web_option,
)
from gcspy.output.share_lines import say_addresses
from gcspy.output.terminal import say
from gcspy_client.interruption import interruption_held_back
from gcspy_session.network.address import default_address

if TYPE_CHECKING:
    from gcspy_client.lessons import Lesson
    from gcspy_client.view.window import MainWindow
    from gcspy_server.api import ServedSession, Server

__all__ = ["command"]


@click.command()
@click.argument("lesson", required=False)
@click.option("--list", "lists", is_flag=True, help="List the lessons, collectors and programs.")
@click.option("--json", "as_json", is_flag=True, help="With --list: as one JSON object.")
@click.option(
    "--collector",
    metavar="NAME",
    help="Collector to simulate: a name, or a file of your own (`gcspy lesson template collector`).",
)
@click.option(
    "--versus",
    metavar="NAME",
    help="Second collector, or python for a real one, run beside the first with the same program and seed. Both advance by allocated bytes, and the costs of both are shown. With --no-window, --listen or --web, both are in one session.",
)
@click.option("--program", metavar="NAME", help="Simulated program: a name, or a file of your own.")
@click.option("--heap", metavar="SIZE", help="Heap size: 256KiB, 16MiB.")
@click.option("--tile", metavar="SIZE", help="Tile size in bytes: 64, 4KiB.")
@click.option(
    "--graph",
    is_flag=True,
    help="Simulations: also show the objects and references of a small heap, as a graph (View, Panels; and in web browsers).",
)
@click.option(
    "--costs",
    is_flag=True,
    help="Simulations: show the costs of the collector: pauses, throughput, minimum mutator utilisation.",
)
@click.option(
    "--option",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="Collector option, such as order=address. Repeatable.",
)
@click.option("--seed", default=1, show_default=True, help="Random seed of the simulated program.")
@click.option(
    "--pace",
    type=click.IntRange(0, 10_000),
    metavar="MS",
    help="Simulations: milliseconds between two events.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    metavar="N",
    help="Simulations: end after N steps.",
)
@click.option(
    "--accesses",
    is_flag=True,
    default=None,
    help="Simulations: show which objects the program used between collections.",
)
@click.option(
    "--trace",
    "trace_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Simulations: write every birth, move, store, death and access to a new object trace (.gctrace).",
)
@no_window_option("a simulation or lesson")
@web_option
@listen_option
@click.option(
    "--record",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Run a lesson to its end without a window and record it.",
)
@click.option(
    "--python",
    default=sys.executable,
    show_default=False,
    help="Python interpreter of the demo program. Default: the one that runs gcspy.",
)
@click.option(
    "--seconds",
    default=8.0,
    show_default=True,
    help="Without a display: seconds to wait before the picture is taken.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("gcspy-demo.png"),
    show_default=True,
    help="Without a display: PNG file to write.",
)
@language_option
@theme_option
@token_option
@click.option(
    "--clock",
    "clock_hz",
    default=10.0,
    show_default=True,
    help="Samples per second of the real program.",
)
def command(
    lesson: str | None,
    lists: bool,
    as_json: bool,
    collector: str | None,
    versus: str | None,
    program: str | None,
    heap: str | None,
    tile: str | None,
    graph: bool,
    costs: bool,
    given: tuple[str, ...],
    seed: int,
    pace: int | None,
    steps: int | None,
    accesses: bool | None,
    trace_file: Path | None,
    no_window: bool,
    listen: tuple[str, ...],
    web: tuple[str, ...],
    record: Path | None,
    python: str,
    seconds: float,
    output: Path,
    theme: str | None,
    token_file: Path | None,
    clock_hz: float,
) -> int:
    """Show a demo program, simulate a collector, or take a lesson.

    Without arguments, the demo program is a small web service with a leaking cache, monitored from
    outside. --collector or --program simulate a heap. LESSON is a name from --list, or a file of
    your own. Without a display, a picture is written.
    """
    if lists:
        _list(as_json=as_json)
        return 0
    if as_json:
        raise click.UsageError("--json needs --list")
    simulated = {
        "collector": collector,
        "program": program,
        "heap_bytes": heap,
        "tile_bytes": tile,
        "pace_millis": pace,
        "steps": steps,
        "accesses": accesses,
        "trace": None if trace_file is None else str(trace_file.absolute()),
        "graph": graph or None,
        "costs": costs or versus is not None or None,
    }
    chosen = {name: value for name, value in simulated.items() if value is not None}
    if collector is not None and collector.endswith(".py"):
        # So small that each step of it can be watched.
        chosen = {"heap_bytes": "64KiB", "slow": 20, **chosen}
    found: Lesson | None = None
    if versus is not None and lesson is not None:
        raise click.UsageError(
            "--versus is for simulations: omit the lesson, or write beside into its header"
        )
    if lesson is not None:
        if chosen or given:
            raise click.UsageError(
                "a lesson defines its own simulation: omit "
                + ", ".join(sorted(_flag(name) for name in chosen))
            )
        from gcspy_client.lessons import find_lesson

        found = find_lesson(lesson)
        chosen = fields_of_lesson(found)
    if record is not None:
        return _record(found, record)
    if found is None and not chosen and not given and versus is None:
        if no_window or listen or web:
            raise click.UsageError(
                "--no-window, --listen and --web need a lesson or a simulation: name one"
            )
        return _watch_service(
            python, seconds=seconds, output=output, seed=seed, theme=theme, clock_hz=clock_hz
        )
    fields = chosen if found is not None else _fields(chosen, given, seed)
    if versus is not None and (no_window or listen or web or versus == "python"):
        fields, versus = {**fields, "beside": versus}, None
    addresses = tuple(parse_address(address) for address in listen)
    with ExitStack() as stack:
        token = None
        if web or any(isinstance(address, TcpAddress) for address in addresses):
            token = read_token(token_file, ask=False) or stack.enter_context(own_token(os.getpid()))
        options = SimulatingOptions(
            simulation=fields,
            listen=(str(default_address(os.getpid())), *(str(address) for address in addresses)),
            token=token,
            web=web,
            web_lesson=""
            if found is None or lesson is None or not lesson.endswith(".md")
            else lesson,
            linger=not no_window,
            longest_hold_secs=LONGEST_HOLD_SECS if no_window and found is None else None,
            pause_at=_beginning(found),
            versus={} if versus is None else {"collector": versus},
            versus_listen=""
            if versus is None
            else str(UnixAddress(f"{default_address(os.getpid()).path}.versus")),
        )
        if no_window:
            return _serve(options)
        return _show(stack, options, found, theme=theme, seconds=seconds, output=output)


def _record(lesson: Lesson | None, path: Path) -> int:
    """Record a lesson."""
    if lesson is None:
        raise click.UsageError("--record needs a lesson: name one")
    from gcspy.recorder.destination import Destination
    from gcspy.recorder.lesson_recorder import record_lesson

    Destination(path=path).check()
    reached = record_lesson(lesson, path)
    say(
        f"{path}: {path.stat().st_size:,} bytes, {len(reached)} steps, the last one at event {reached[-1]:,}; gcspy pack compresses it"
    )
    return 0


def _flag(name: str) -> str:
    return "--" + name.removesuffix("_bytes").removesuffix("_millis")


def _fields(chosen: dict[str, Any], given: tuple[str, ...], seed: int) -> dict[str, Any]:
    """Fields of the simulator's options, from those of the command line."""
    from gcspy_drivers.simulator.driver.options import parse_size

    fields = {
        name: parse_size(value) if name.endswith("_bytes") else value
        for name, value in chosen.items()
    }
    plan: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"--option {text}: write it as NAME=VALUE")
        plan[name] = {"yes": True, "no": False}.get(value, int(value) if value.isdigit() else value)
    return {**fields, "plan": plan, "seed": seed}


def _beginning(lesson: Lesson | None) -> str:
    if lesson is None:
        return ""
    from gcspy_client.lessons.lesson import BEGINS

    return BEGINS


def _list(*, as_json: bool) -> None:
    """List collectors, programs and lessons."""
    from gcspy_drivers.simulator.plans import PLANS
    from gcspy_drivers.simulator.programs import PROGRAMS
    from gcspy_replay.samples import lesson_recording

    from gcspy_client.lessons import shipped_lessons

    lessons = [
        {
            "name": one.name,
            "title": one.title,
            "goal": one.goal,
            "steps": len(one.steps),
            "collector": one.simulation.get("collector", "marksweep"),
            "recording": str(lesson_recording(one.name) or ""),
        }
        for one in shipped_lessons()
    ]
    collectors = [{"name": plan.name, "title": plan.title} for plan in PLANS.values()]
    programs = [
        {"name": program.name, "title": program.title, "about": program.about}
        for program in PROGRAMS.values()
    ]
    if as_json:
        say(json.dumps({"lessons": lessons, "collectors": collectors, "programs": programs}))
        return
    width = max(len(str(one["name"])) for one in (*lessons, *collectors, *programs)) + 2
    say("Lessons: gcspy demo NAME; recorded, without a simulation: gcspy replay NAME")
    for one in lessons:
        say(f"  {one['name']!s:{width}}{one['title']}")
    say()
    say("Collectors: gcspy demo --collector NAME")
    for row in collectors:
        say(f"  {row['name']:{width}}{row['title']}")
    say()
    say("Programs: gcspy demo --program NAME")
    for row in programs:
        say(f"  {row['name']:{width}}{row['title']}")


def _serve(options: SimulatingOptions) -> int:
    """Simulate in this process until the program ends, Ctrl-C or SIGTERM."""
    stop = stop_at_signals()

    def ready(server: Server, listening: ServedSession) -> None:
        say(
            f"gcspy: simulating {server.name}; it starts when the first client connects; a pause stops the program"
        )
        say_addresses(listening.addresses, pages=listening.pages)

    ended = simulate(options, stop=stop, on_ready=ready)
    say(f"gcspy: {ended}")
    return 0


def _show(
    stack: ExitStack,
    options: SimulatingOptions,
    lesson: Lesson | None,
    *,
    theme: str | None,
    seconds: float,
    output: Path,
) -> int:
    """Simulate in a sidecar, and show it in a window, or in a picture if there is no display."""
    require_gui()
    if lesson is not None:
        require_window()
    sidecar = stack.enter_context(start_sidecar(options))
    with interruption_held_back():
        from gcspy_client.app import run_window, take_screenshot  # while the sidecar starts

    address = sidecar.addresses[0]
    say_addresses(sidecar.addresses[1:], pages=sidecar.pages)

    def arrange(window: MainWindow) -> None:
        if lesson is not None:
            window.lessons.open(lesson)
        if options.versus_listen:
            window.compare.join_soon(parse_address(options.versus_listen))

    if has_display():
        return run_window(address, theme=theme, front=front_door(), on_ready=arrange)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    say(f"gcspy: no display found; taking a picture after {seconds:g} s")
    take_screenshot(address, output, theme=theme or "dark", settle_secs=seconds, arrange=arrange)
    say(f"gcspy: wrote {output.resolve()}")
    return 0


def _watch_service(
    python: str, *, seconds: float, output: Path, seed: int, theme: str | None, clock_hz: float
) -> int:
    """Start the service, attach to it from outside, and show it; without a display do the same off screen and write a picture."""
    require_gui()
    with running_workload(python, seed=seed) as pid:
        say(f"gcspy: the service runs as process {pid}")
        with start_sidecar(ServingOptions(pid=pid, clock_hz=clock_hz, linger=True)) as sidecar:
            with interruption_held_back():
                from gcspy_client.app import run_window, take_screenshot  # while the sidecar starts

            address = sidecar.addresses[0]
            say(f"gcspy: attached in passive mode; serving {address}")
            if has_display():
                return run_window(address, theme=theme, front=front_door())
            os.environ["QT_QPA_PLATFORM"] = "offscreen"
            say(f"gcspy: no display found; taking a picture after {seconds:g} s")
            take_screenshot(address, output, theme=theme or "dark", settle_secs=seconds)
            say(f"gcspy: wrote {output.resolve()}")
    return 0
