"""`CallTree`: allocation stacks that begin alike, merged: the data of a flame graph.

Built a level at a time, from the outermost frames inwards, without a loop over stacks.

Knows sites and their sums; does not draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.names import Sites, Types
from gcspy_objects.stacks.site_sums import SiteSums

__all__ = ["CallTree", "call_tree"]

Longs = NDArray[np.int64]

_LABEL_BASE: Final = 1 << 60
_TYPE_BASE: Final = 1 << 61


@dataclass(frozen=True, slots=True, eq=False)
class CallTree:
    """A tree of n nodes, parents before children. Node 0 is the root: all objects.

    Attributes:
        parent: (n,) of each node; -1 of the root.
        depth: (n,) frames above it; 0 for the root.
        name: (n) what it is: a function, a site without frames, or a type (the leaves).
        objects: (n,) allocated by it and what it called.
        bytes: (n,) of these.
        before: (n,) bytes of them at an earlier moment; None: there is none.
    """

    parent: Longs
    depth: Longs
    name: list[str]
    objects: Longs
    bytes: Longs
    before: Longs | None = None

    def __len__(self) -> int:
        return len(self.parent)


def call_tree(
    sites: Sites,
    types: Types,
    sums: SiteSums,
    *,
    before: SiteSums | None = None,
    lines: bool = False,
    inverted: bool = False,
    with_types: bool = True,
) -> CallTree:
    """Merge the stacks of sites.

    Args:
        sites: Of the trace.
        types: Of the trace.
        sums: Objects and bytes of each site and type.
        before: Those of an earlier moment, for `CallTree.before`; pairs that are only there become nodes without objects.
        lines: Whether two places in one function are two nodes.
        inverted: Whether the functions that allocate come first, and what called them below.
        with_types: Whether types are the leaves, where they are known.
    """
    pairs = sums.pair if before is None else np.union1d(sums.pair, before.pair)
    objects, size = _spread(sums, pairs)
    earlier = None if before is None else _spread(before, pairs)[1]
    site, type_ = (pairs >> 32).astype(np.int64), pairs & 0xFFFF_FFFF
    first, last = sites.first_frame[site], sites.first_frame[site + 1]
    frames = last - first
    levels = int(frames.max(initial=0)) + 2
    parents, depths, keys = [np.array([-1])], [np.zeros(1, np.int64)], [np.array([-1])]
    totals = [[objects.sum()], [size.sum()], [0 if earlier is None else earlier.sum()]]
    node = np.zeros(len(pairs), np.int64)
    count = 1
    for level in range(levels):
        # A stack's frames, then its label if it has none, then its type.
        labelled = (frames == 0) & (level == 0)
        ends = np.maximum(frames, 1)
        typed = (ends == level) & (type_ > 0) & with_types
        here = np.flatnonzero((level < frames) | labelled | typed)
        if not len(here):
            continue
        key = np.empty(len(here), np.int64)
        for row, kind in ((0, level < frames[here]), (1, labelled[here]), (2, typed[here])):
            which = here[kind]
            if row == 0:
                at = first[which] + level if inverted else last[which] - 1 - level
                key[kind] = sites.frame_method[at].astype(np.int64) << 31
                if lines:
                    key[kind] |= np.maximum(sites.frame_bci[at].astype(np.int64), 0)
            else:
                key[kind] = _LABEL_BASE + site[which] if row == 1 else _TYPE_BASE + type_[which]
        order = np.lexsort((key, node[here]))
        new = np.ones(len(here), np.bool_)
        new[1:] = (key[order[1:]] != key[order[:-1]]) | (
            node[here[order[1:]]] != node[here[order[:-1]]]
        )
        number = np.empty(len(here), np.int64)
        number[order] = np.cumsum(new) - 1
        heads = here[order[new]]
        parents.append(node[heads])
        depths.append(np.full(len(heads), level + 1, np.int64))
        keys.append(key[order[new]])
        for total, value in zip(
            totals, (objects, size, size if earlier is None else earlier), strict=True
        ):
            sums_here = np.zeros(len(heads), np.int64)
            np.add.at(sums_here, number, value[here])
            total.extend(sums_here.tolist())
        node[here] = number + count
        count += len(heads)
    tree_keys = np.concatenate(keys)
    return CallTree(
        np.concatenate(parents).astype(np.int64),
        np.concatenate(depths),
        ["all", *(_name(sites, types, key, lines=lines) for key in tree_keys[1:].tolist())],
        np.array(totals[0], np.int64),
        np.array(totals[1], np.int64),
        None if earlier is None else np.array(totals[2], np.int64),
    )


def _spread(sums: SiteSums, pairs: Longs) -> tuple[Longs, Longs]:
    """Return objects and bytes of each of `pairs`, 0 where there is none."""
    row = np.searchsorted(pairs, sums.pair)
    objects, size = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
    objects[row], size[row] = sums.objects, sums.bytes
    return objects, size


def _name(sites: Sites, types: Types, key: int, *, lines: bool) -> str:
    if key >= _TYPE_BASE:
        return types.names[key - _TYPE_BASE]
    if key >= _LABEL_BASE:
        return sites.labels[key - _LABEL_BASE] or "(unknown)"
    method = sites.methods[key >> 31]
    line = key & ((1 << 31) - 1)
    return f"{method} @ {line}" if lines and line else method
