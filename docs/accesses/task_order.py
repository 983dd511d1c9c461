"""A program that puts tasks in order: with networkx, or with the standard library's graphlib.

python task_order.py networkx|graphlib
"""

import gc
import os
import random
import sys


def ordered(tasks):
    """Return the tasks, each after those that it needs."""
    if sys.argv[1] == "networkx":
        import networkx as nx

        graph = nx.DiGraph((need, task) for task, needs in tasks.items() for need in needs)
        return list(nx.topological_sort(graph))
    import graphlib

    return list(graphlib.TopologicalSorter(tasks).static_order())


gc.set_threshold(100_000, 50, 1000)  # each collection is read whole at level 3: fewer of them


def main():
    """Order tasks, again and again, as a build server does."""
    chance = random.Random(1)
    for turn in range(12):
        tasks = {number: chance.sample(range(number), min(number, 3)) for number in range(2000)}
        ordered(tasks)
        if turn in (5, 11):
            gc.collect()
    with open("/proc/self/status") as file:
        print(next(line for line in file if line.startswith("VmRSS")).strip())
    sys.stdout.flush()
    os._exit(0)  # without the collection at the end of an interpreter


main()
