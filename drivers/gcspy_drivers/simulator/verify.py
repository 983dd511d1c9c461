"""Check a heap against its program by a method that no collector uses.

`verify` reads the memory as a list of Python's numbers, walks it cell by cell and follows references from the roots, beside the program's own graph
(`shadow`). It uses no loop of the collectors, and none of their records but those that it checks. It reports defects and never repairs them.

1. Spaces lie in the heap and do not overlap; their tops are in them; the ranges that are said to be covered are, without gap or overlap.
2. Each root and each field holds the object that it should; each such object is there once, where a cell begins, not in an idle space, not an
   old copy; its size, type, number of fields and data are right.
3. Each cell in the free lists is free, in one list, once, and in the right list; these cells are
   all that the plan reports as free.
4. After a whole collection of an exact collector nothing else is there.
5. A weak reference refers to the object that it was made for, or to nothing; that only if the object cannot be reached, or its finaliser was called.
6. The plan's own invariants hold (`Plan.check`).

In the middle of a collection during which no program runs, only 1 is checked.
"""

from __future__ import annotations

from gcspy_drivers.simulator.heap import (
    AGE_SHIFT,
    FIELDS_SHIFT,
    FIRST,
    FORWARDED,
    FREE,
    HEADER_WORDS,
    LINK_SHIFT,
    SIZE_MASK,
    TYPE_SHIFT,
)
from gcspy_drivers.simulator.plan import Plan
from gcspy_drivers.simulator.shadow import Shadow

__all__ = ["verify"]

_MOST = 20
"""Most defects to report: one has many consequences, and the rest is not worth reading."""


def verify(plan: Plan, shadow: Shadow, *, collected: bool = False) -> list[str]:
    """Return descriptions of all defects; none if the heap is right. Objects that the program cannot reach any more are removed from `shadow`.

    Args:
        collected: A collection of kind FULL has just ended, and the program did nothing since.
    """
    found: list[str] = []
    words: list[int] = plan.heap.words.tolist()
    _check_spaces(plan, found)
    cells = _walk(plan, words, found)
    if found or plan.program_waits:
        return found[:_MOST]
    reachable = shadow.reachable()
    places = _check_graph(plan, words, cells, shadow, found)
    _check_weak(plan, words, cells, shadow, places, found)
    _check_free_lists(plan, words, cells, found)
    if collected and plan.exact:
        for cell in sorted(cells):
            if words[cell] & FREE:
                continue
            number = words[cell + 1] & ((1 << LINK_SHIFT) - 1)
            if number not in reachable:
                found.append(
                    f"object {number} at word {cell} cannot be reached, but survived a full collection"
                )
    found.extend(plan.check())
    shadow.prune(reachable)
    return found[:_MOST]


def _check_spaces(plan: Plan, found: list[str]) -> None:
    behind = FIRST
    for space in plan.spaces():
        if not behind <= space.start <= space.top <= space.end <= plan.heap.end:
            found.append(
                f"space {space.name} is {space.start} to {space.end}, top {space.top}, behind one that ends at {behind}"
            )
        behind = space.end


def _walk(plan: Plan, words: list[int], found: list[str]) -> dict[int, int]:
    """Return the cells of all extents: address to size."""
    cells: dict[int, int] = {}
    behind = FIRST
    for start, end in plan.extents():
        if start < behind:
            found.append(
                f"the extent {start} to {end} begins before the one in front of it ends, at {behind}"
            )
        behind = cell = end
        cell = start
        while cell < end:
            size = words[cell] & SIZE_MASK
            if size == 0 or cell + size > end:
                found.append(
                    f"the cell at word {cell} has {size} words, in an extent from {start} to {end}"
                )
                break
            if not words[cell] & FREE and size < HEADER_WORDS + (
                (words[cell] >> FIELDS_SHIFT) & 0xFFFF
            ):
                found.append(f"the object at word {cell} has {size} words, too few for its fields")
            cells[cell] = size
            cell += size
    return cells


def _check_graph(
    plan: Plan, words: list[int], cells: dict[int, int], shadow: Shadow, found: list[str]
) -> dict[int, int]:
    """Compare what the roots reach; return the address of each object that was found, by its number."""
    idle = [(space.start, space.end) for space in plan.spaces() if space.role == "idle"]
    places: dict[int, int] = {}
    left: list[tuple[int, int, str]] = [
        (cell, number, f"root {slot}")
        for slot, (cell, number) in enumerate(
            zip(plan.heap.roots.tolist(), shadow.roots, strict=True)
        )
    ]
    while left and len(found) < _MOST:
        cell, number, where = left.pop()
        if number == 0 or cell == 0:
            if number != cell:
                found.append(
                    f"{where} holds {'an object' if cell else 'null'}, and should hold {f'object {number}' if number else 'null'}"
                )
            continue
        if number in places:
            if places[number] != cell:
                found.append(
                    f"{where} holds object {number} at word {cell}, others at {places[number]}"
                )
            continue
        places[number] = cell
        if cell not in cells or words[cell] & FREE:
            found.append(
                f"{where} should hold object {number}, but at word {cell} there is {'a free cell' if cell in cells else 'no cell'}"
            )
            continue
        wrong = _object_wrong(words, cell, number, shadow)
        if not wrong and any(start <= cell < end for start, end in idle):
            wrong = "is in an idle space"
        if wrong:
            found.append(f"object {number}, which {where} holds, at word {cell}: {wrong}")
            continue
        first = cell + HEADER_WORDS
        for field, target in enumerate(shadow.objects[number].fields):
            refers = words[first + field]
            left.append(
                (plan.current(refers) if refers else 0, target, f"field {field} of object {number}")
            )
    return places


def _check_weak(
    plan: Plan, words: list[int], cells: dict[int, int], shadow: Shadow, places: dict[int, int], found: list[str]
) -> None:  # fmt: skip
    for weak, target in shadow.weak.items():
        if weak not in places:
            continue
        cell = plan.weak_target(places[weak])
        if not cell:
            if target in places and target not in shadow.finalised:
                found.append(f"weak reference {weak} was cleared, and object {target} is in use")
        elif cell not in cells or words[cell] & FREE:
            found.append(f"weak reference {weak} refers to word {cell}, where there is no object")
        elif words[cell + 1] & ((1 << LINK_SHIFT) - 1) != target:
            found.append(f"weak reference {weak} refers to another object than {target}")


def _object_wrong(words: list[int], cell: int, number: int, shadow: Shadow) -> str:
    """Say what is wrong with an object itself."""
    should = shadow.objects[number]
    status = words[cell]
    is_number = words[cell + 1] & ((1 << LINK_SHIFT) - 1)
    fields = (status >> FIELDS_SHIFT) & 0xFFFF
    type_id = (status >> TYPE_SHIFT) & ((1 << (AGE_SHIFT - TYPE_SHIFT)) - 1)
    if is_number != number:
        return f"is object {is_number}"
    if status & FORWARDED:
        return "is an old copy"
    if (status & SIZE_MASK, fields, type_id) != (should.size, len(should.fields), should.type_id):
        return f"has {status & SIZE_MASK} words, {fields} fields, type {type_id}; was made with {should.size}, {len(should.fields)}, {should.type_id}"
    data = range(HEADER_WORDS + fields, should.size)
    if any(words[cell + i] != (number << 8 | i & 255) for i in data):
        return "its data were changed"
    return ""


def _check_free_lists(
    plan: Plan, words: list[int], cells: dict[int, int], found: list[str]
) -> None:
    lists = plan.free_lists()
    if lists is None:
        return
    seen: set[int] = set()
    starts = lists.starts.tolist()
    for at, name in enumerate(lists.names):
        for cell in lists.cells[starts[at] : starts[at + 1]].tolist():
            size = cells.get(cell, 0)
            if not size or not words[cell] & FREE:
                found.append(
                    f"free list {name} has word {cell}, where there is {'an object' if size else 'no cell'}"
                )
            elif cell in seen:
                found.append(
                    f"free list {name} has the cell at word {cell}, which is in a list already"
                )
            elif size < lists.smallest[at] or (
                at + 1 < len(lists.names) and size >= lists.smallest[at + 1]
            ):
                found.append(f"free list {name} has the cell at word {cell}, of {size} words")
            seen.add(cell)
    if plan.collection is None:
        lost = [
            cell
            for cell, size in cells.items()
            if words[cell] & FREE and size >= lists.smallest[0] and cell not in seen
        ]
        if lost and plan.lists_all_free:
            found.append(
                f"{len(lost)} free cells are in no free list, the first at word {min(lost)}"
            )
