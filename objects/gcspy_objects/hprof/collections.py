"""The uninformative inside of Java's collections: ``shop.Cache.ENTRIES['k12']``, not its table, bucket and node.

Knows names of fields of the class library, of 8 to 25; reads nothing.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ENTRIES", "INSIDE", "ITEMS", "SETS", "TABLES", "is_inside"]

INSIDE: Final = {
    "java.lang.Thread": {"threadLocals", "inheritableThreadLocals"},
    "java.lang.ThreadLocal$ThreadLocalMap": {"table"},
    "java.util.ArrayDeque": {"elements"},
    "java.util.ArrayList": {"elementData"},
    "java.util.Arrays$ArrayList": {"a"},
    "java.util.HashMap": {"table"},
    "java.util.HashMap$Node": {"next"},
    "java.util.HashMap$TreeNode": {"parent", "left", "right", "prev"},
    "java.util.HashSet": {"map"},
    "java.util.Hashtable": {"table"},
    "java.util.Hashtable$Entry": {"next"},
    "java.util.IdentityHashMap": {"table"},
    "java.util.ImmutableCollections$ListN": {"elements"},
    "java.util.ImmutableCollections$SetN": {"elements"},
    "java.util.ImmutableCollections$MapN": {"table"},
    "java.util.LinkedHashMap": {"head", "tail"},
    "java.util.LinkedHashMap$Entry": {"before", "after"},
    "java.util.LinkedList": {"first", "last"},
    "java.util.LinkedList$Node": {"next", "prev"},
    "java.util.PriorityQueue": {"queue"},
    "java.util.Properties": {"map"},
    "java.util.TreeMap": {"root"},
    "java.util.TreeMap$Entry": {"left", "right", "parent"},
    "java.util.TreeSet": {"m"},
    "java.util.Vector": {"elementData"},
    "java.util.WeakHashMap": {"table"},
    "java.util.WeakHashMap$Entry": {"next"},
    "java.util.concurrent.ArrayBlockingQueue": {"items"},
    "java.util.concurrent.ConcurrentHashMap": {"table", "nextTable"},
    "java.util.concurrent.ConcurrentHashMap$CollectionView": {"map"},
    "java.util.concurrent.ConcurrentHashMap$ForwardingNode": {"nextTable"},
    "java.util.concurrent.ConcurrentHashMap$Node": {"next"},
    "java.util.concurrent.ConcurrentHashMap$TreeBin": {"root", "first"},
    "java.util.concurrent.ConcurrentHashMap$TreeNode": {"parent", "left", "right", "prev"},
    "java.util.concurrent.ConcurrentLinkedDeque": {"head", "tail"},
    "java.util.concurrent.ConcurrentLinkedDeque$Node": {"next", "prev"},
    "java.util.concurrent.ConcurrentLinkedQueue": {"head", "tail"},
    "java.util.concurrent.ConcurrentLinkedQueue$Node": {"next"},
    "java.util.concurrent.ConcurrentSkipListMap": {"head"},
    "java.util.concurrent.ConcurrentSkipListMap$Index": {"down", "right", "node"},
    "java.util.concurrent.ConcurrentSkipListMap$Node": {"next"},
    "java.util.concurrent.ConcurrentSkipListSet": {"m"},
    "java.util.concurrent.CopyOnWriteArrayList": {"array"},
    "java.util.concurrent.CopyOnWriteArraySet": {"al"},
    "java.util.concurrent.LinkedBlockingDeque": {"first", "last"},
    "java.util.concurrent.LinkedBlockingDeque$Node": {"next", "prev"},
    "java.util.concurrent.LinkedBlockingQueue": {"head", "last"},
    "java.util.concurrent.LinkedBlockingQueue$Node": {"next"},
    "java.util.concurrent.PriorityBlockingQueue": {"queue"},
}
"""References by the class that declares them: the object that a reference leads to is a part of the object that has it."""

ITEMS: Final = {
    "java.util.LinkedList$Node": "item",
    "java.util.concurrent.ConcurrentLinkedDeque$Node": "item",
    "java.util.concurrent.ConcurrentLinkedQueue$Node": "item",
    "java.util.concurrent.LinkedBlockingDeque$Node": "item",
    "java.util.concurrent.LinkedBlockingQueue$Node": "item",
    "java.util.ImmutableCollections$List12": "e0",
    "java.util.ImmutableCollections$Set12": "e0",
}
"""References to items of a list or queue, whose place is not said."""

ENTRIES: Final = {
    "java.util.HashMap$Node": ("key", "value"),
    "java.util.Hashtable$Entry": ("key", "value"),
    "java.util.ImmutableCollections$Map1": ("k0", "v0"),
    "java.util.TreeMap$Entry": ("key", "value"),
    "java.util.WeakHashMap$Entry": ("", "value"),
    "java.util.concurrent.ConcurrentHashMap$Node": ("key", "val"),
    "java.util.concurrent.ConcurrentSkipListMap$Node": ("key", "value"),
}
"""Key and value of an entry of a map."""

SETS: Final = {
    "java.util.HashSet",
    "java.util.TreeSet",
    "java.util.concurrent.ConcurrentHashMap$CollectionView",
    "java.util.concurrent.ConcurrentSkipListSet",
}
"""Sets that keep their members as keys of a map."""

TABLES: Final = {
    "java.lang.ThreadLocal$ThreadLocalMap$Entry[]",
    "java.util.HashMap$Node[]",
    "java.util.Hashtable$Entry[]",
    "java.util.WeakHashMap$Entry[]",
    "java.util.concurrent.ConcurrentHashMap$Node[]",
}
"""Arrays whose indices the program does not choose."""

_WRAPPERS: Final = "java.util.Collections$"
_WRAPPED: Final = {"c", "m", "list", "map", "q", "s", "sm", "ss"}


def is_inside(owner: str, field: str) -> bool:
    """Return whether a reference leads to a part of what has it.

    Args:
        owner: The class that declares it.
        field: Its name.
    """
    if owner.startswith(_WRAPPERS):
        return field in _WRAPPED
    return field in INSIDE.get(owner, ())
