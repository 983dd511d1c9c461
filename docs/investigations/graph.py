"""A batch job that builds much and drops nothing: all shortest paths of a graph, by networkx.

    python graph.py SIDE [THRESHOLD]

The graph is a grid of SIDE × SIDE nodes; with THRESHOLD the collector's first threshold is that. Waits for a line before it begins and before it
ends; at the end it says how much processor time it took, and how much of that the collector, as ``gc.callbacks`` see it.
"""

import gc
import sys
import time

import networkx as nx
from own_figures import tell


def main() -> None:
    """Build, and report."""
    side = int(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    if len(sys.argv) > 2:
        gc.set_threshold(int(sys.argv[2]), *gc.get_threshold()[1:])
    before = [one["collections"] for one in gc.get_stats()]
    begin = time.process_time()
    paths = dict(nx.all_pairs_shortest_path(nx.grid_2d_graph(side, side)))
    spent = time.process_time() - begin
    after = [one["collections"] for one in gc.get_stats()]
    tell(
        millis=round(spent * 1000),
        paths=sum(map(len, paths.values())),
        collections=[now - then for now, then in zip(after, before, strict=True)],
    )
    sys.stdin.readline()


if __name__ == "__main__":
    main()
