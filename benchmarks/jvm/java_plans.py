"""Plans of counters for Java: how many increments each would need, computed from how often control went along each edge of each method.

    python -m benchmarks.jvm.java_plans [--java PATH] [--programs FOLDER] [--pairs N] [--only PROGRAM] [--json]

Three programs that do little but allocate, those of `jvm_site_counts`, and three real ones: javac, Lucene and H2. An agent (`FlowCounts.java`, for Java 24 and later)
counts all edges; plans are made from these counts, which is the best case. *Fewest* takes for each method the plan of block, paths and tree with the fewest
increments. Exceptions would need one increment each, and are not among them. *Shared* is what gcspy does, counted by its agent. Times are processor time of the JVM,
start included, in pairs with the program alone; *idle* is the agent with a counter for each site that counts nothing: what rewriting alone takes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcspy_counting.bytecode.instructions import Instructions
from gcspy_counting.flow_graph import OUTSIDE, Block, Edge, EdgeKind, FlowGraph
from gcspy_counting.network import Network, network_of
from gcspy_counting.plans.block_plan import block_plan
from gcspy_counting.plans.path_plan import path_plan
from gcspy_counting.plans.plan import Plan
from gcspy_counting.plans.tree_plan import tree_plan
from gcspy_counting.sites import Site
from gcspy_drivers.hotspot.counting.counting_agent import path_of_agent
from gcspy_drivers.hotspot.counting.site_files import SiteFiles
from gcspy_protocol.errors import Unsupported

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.figures import tell
from benchmarks.jvm.jvm_site_counts import compile_programs, processor_secs
from benchmarks.targets.java_programs import PROGRAMS, JavaPrograms, unpack_sources

__all__ = ["main"]

_AGENT = Path(__file__).with_name("FlowCounts.java")
COUNTERS = Path(__file__).parents[2] / "drivers/native/counting/gcspy/SiteCounters.java"
_SCALE = {"javac": 1.0, "Lucene": 0.5, "H2": 0.25}
"""Factor of the rounds of each real program: counting all edges is slow."""

PLANS: Mapping[str, Callable[[Network, Mapping[int, float]], Plan]] = {
    "block": lambda network, _frequencies: block_plan(network),
    "paths": path_plan,
    "tree": tree_plan,
}


@dataclass(frozen=True, slots=True)
class Increments:
    """Increments of one program, computed.

    Attributes:
        executions: Executions of all sites: increments with one counter for each.
        by_plan: Increments by plan.
        exceptions: How often an exception left a block in its middle.
        methods: Methods with sites that ran.
    """

    executions: int
    by_plan: Counter[str]
    exceptions: int
    methods: int


def _methods(path: Path) -> Iterator[tuple[Network, list[int], int]]:
    """Yield the network of each method that ran, the flow along its edges, and the number of exceptions that left it or a block of it."""
    for line in path.read_text().splitlines():
        method = json.loads(line)
        flow = [count for *_, count in method["edges"]]
        if not any(flow):
            continue
        kinds = [EdgeKind(kind) for _, _, kind, _ in method["edges"]]
        edges = [
            Edge(source, target, kind, kind is not EdgeKind.HANDLER)
            for (source, target, *_), kind in zip(method["edges"], kinds, strict=True)
        ]
        blocks = [
            Block(at, at, at + 1, (Site(at, "object", True),) * sites)
            for at, sites in enumerate(method["sites"])
        ]
        nothing = Instructions([], [], [], [], [], {}, {}, 0)
        code = _methods.__code__  # only named in errors
        network = network_of(FlowGraph(code, nothing, [], 0, blocks, edges, [], {}, [], []))
        entered, left = [0] * len(blocks), [0] * len(blocks)
        for edge, count in zip(edges, flow, strict=True):
            if edge.target != OUTSIDE:
                entered[edge.target] += count
            if edge.source != OUTSIDE:
                left[edge.source] += count
        flow += [entered[block] for block in network.block_edges]
        yield network, flow, sum(entered) - sum(left)


def increments(path: Path) -> Increments:
    """Compute the increments of each plan from the file of the agent."""
    by_plan: Counter[str] = Counter()
    executions = exceptions = methods = 0
    for network, flow, thrown in _methods(path):
        methods += 1
        exceptions += thrown
        executions += sum(
            flow[edge] * len(network.graph.blocks[block].sites)
            for block, edge in network.block_edges.items()
        )
        frequencies = {edge: float(count) for edge, count in enumerate(flow)}
        mine = {
            name: sum(flow[edge] for edge in make(network, frequencies).counted)
            for name, make in PLANS.items()
        }
        mine["fewest"] = min(mine.values())
        by_plan.update(mine)
    return Increments(executions, by_plan, exceptions, methods)


def _agent(java: str, folder: Path) -> Path:
    """Build the agent.

    Raises:
        Unavailable: There is no JDK of Java 24 or later.
    """
    bin_folder = Path(shutil.which(java) or java).resolve().parent
    classes = folder / "agent"
    built = subprocess.run(
        [bin_folder / "javac", "-d", classes, _AGENT], capture_output=True, text=True, check=False
    )
    if built.returncode:
        raise Unavailable(f"a JDK of Java 24 or later is needed: {built.stderr.strip()[:200]}")
    jar = folder / "flow.jar"
    manifest = folder / "manifest"
    manifest.write_text(f"Premain-Class: FlowCounts\nBoot-Class-Path: {jar.name}\n")
    command = [str(bin_folder / "jar"), "cfm", str(jar), str(manifest), "-C", str(classes), "."]
    subprocess.run(command, check=True, capture_output=True)
    return jar


def _idle_agent(java: str, folder: Path) -> Path:
    """Build the agent of gcspy with counters that count nothing."""
    agent = path_of_agent()
    source = COUNTERS.read_text()
    increment = "long ignored = (long) LONGS.getAndAdd(counters, 8 * site, 1L);"
    assert increment in source
    stub = folder / COUNTERS.name
    stub.write_text(source.replace(increment, ""))
    javac = (Path(shutil.which(java) or java).resolve().parent / "javac").as_posix()
    classes = folder / "idle"
    subprocess.run([javac, "-cp", agent, "-d", classes, stub], check=True, capture_output=True)
    # The agent's list of boot classes has its name.
    with zipfile.ZipFile(agent) as jar, zipfile.ZipFile(classes / agent.name, "w") as made:
        for name in jar.namelist():
            idle = classes / name
            made.writestr(name, idle.read_bytes() if idle.is_file() else jar.read(name))
    return classes / agent.name


def measure(name: str, command: list[str], agent: Path, idle: Path, pairs: int) -> dict[str, Any]:
    """Count the flow of one program, and count its sites as gcspy does.

    Args:
        name: Its name in tables.
        command: The launcher, and its arguments.
        agent: The agent that counts edges.
        idle: The agent of gcspy with counters that count nothing.
        pairs: Pairs of runs with and without counting.

    Raises:
        Unavailable: It does not run.
    """
    flow = agent.with_name(f"{name}.flow")
    processor_secs([command[0], f"-javaagent:{agent}={flow}", *command[1:]])
    computed = increments(flow)
    ratios: dict[str, list[float]] = {"idle": [], "site": [], "shared": []}
    share = 1.0
    for _ in range(pairs):
        for plan, found in ratios.items():
            alone, _ = processor_secs(command)
            with tempfile.TemporaryDirectory(dir=agent.parent) as folder:
                mine = idle if plan == "idle" else path_of_agent()
                argument = f"-javaagent:{mine}={'' if plan == 'shared' else 'site:'}{folder}"
                secs, _ = processor_secs([command[0], argument, *command[1:]])
                counts, made = SiteFiles(Path(folder)).read()
            found.append(secs / alone)
            if plan == "shared":
                share = float(made.sum() / counts.sum())
    return {
        "program": name,
        "methods": computed.methods,
        "executions": computed.executions,
        "shared": share,
        "increments": {
            plan: count / computed.executions for plan, count in computed.by_plan.items()
        },
        "exceptions": computed.exceptions / computed.executions,
        "slowdown": {plan: statistics.median(found) for plan, found in ratios.items()},
    }


def _commands(
    java: str, programs: Path, folder: Path, only: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the names and command lines of all programs, or of one."""
    small = compile_programs(folder)
    for name in small:
        if only in (None, name):
            yield name, [java, "-cp", str(folder), name]
    if only in small:
        return
    sources = folder / "sources"
    home = Path(shutil.which(java) or java).resolve().parents[1]
    unpack_sources(home / "lib/src.zip", sources)
    real = JavaPrograms(java, programs, sources)
    for program in PROGRAMS:
        if only not in (None, program.name):
            continue
        command = real.command(program, folder / "told", (), scale=_SCALE[program.name])
        at = command.index("Timed")
        yield program.name, command[:at] + command[at + 2 :]


def _row(found: dict[str, Any]) -> str:
    plans = " | ".join(f"{found['increments'][each]:.1%}" for each in (*PLANS, "fewest"))
    times = " | ".join(f"{each:.2f}" for each in found["slowdown"].values())
    return (
        f"| {found['program']} | {found['methods']:,} | {found['executions']:,} | {found['shared']:.1%}"
        f" | {plans} | {found['exceptions']:.1%} | {times} |"
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--java", default="java", help="the launcher of a JDK of Java 24 or later")
    parser.add_argument("--programs", type=Path, help="folder for the real programs, kept")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", help="one program")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="gcspy-java-plans-") as name:
        folder = Path(name)
        try:
            agent = _agent(options.java, folder)
            idle = _idle_agent(options.java, folder)
            if not options.json:
                print(
                    "| program | methods | executions | shared | block | paths | tree | fewest | exceptions | time, idle | time, site | time, shared |"
                )
                print("|---|" + "--:|" * 11)
            kept = options.programs or folder
            for program, command in _commands(options.java, kept, folder, options.only):
                results.append(measure(program, command, agent, idle, options.pairs))
                if not options.json:
                    print(_row(results[-1]), flush=True)
        except (Unavailable, Unsupported) as error:
            print(f"java_plans: {error}", file=sys.stderr)
            return 1
    if options.json:
        print(json.dumps(results))
    for each in results:
        tell(f"plans for Java, {each['program']}, fewest increments", each["increments"]["fewest"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
