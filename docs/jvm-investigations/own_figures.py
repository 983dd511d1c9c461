"""Figures that a program run by Jython gives of itself: time, and its collections by the JVM's own beans.

Waits for a line before the work begins and before the program ends. Python 2.7, as Jython is.
"""

import json
import sys
import time

from java.lang import Runtime
from java.lang.management import ManagementFactory


def _collections():
    return {
        str(one.name): [one.collectionCount, one.collectionTime]
        for one in ManagementFactory.getGarbageCollectorMXBeans()
    }


def watch(work):
    """Do the work, and print what it took as JSON."""
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    before, began = _collections(), time.time()
    work()
    said = {"millis": int((time.time() - began) * 1000)}
    for name, (count, millis) in _collections().items():
        said[name] = [count - before[name][0], millis - before[name][1]]
    print(json.dumps(said))
    sys.stdout.flush()
    sys.stdin.readline()
    Runtime.getRuntime().halt(0)
