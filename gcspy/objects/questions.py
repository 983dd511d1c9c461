"""The queries of `gcspy objects`: translates the command line to queries on the lives of a trace.

Knows options and analyses; does not know how either works.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

import click

from gcspy.objects.life_analysis import lives_and_heap_of, lives_of, require_engine
from gcspy.objects.results import Output, prepare, show

__all__ = [
    "ask_churn",
    "ask_collections",
    "ask_growth",
    "ask_kinds",
    "ask_lifetimes",
    "ask_survival",
]

_DRAWN_POINTS = 400
"""Number of ages in a plotted curve, for each generation."""


class QueryOptions(TypedDict):
    """The selection of objects, and the form of the answer: options that all queries share."""

    type: str
    site: str
    as_json: bool
    parquet: Path | None
    plot: Path | None
    theme: str | None
    force: bool


def _prepare(wanted: QueryOptions, *, in_bytes: bool = False) -> Output:
    """Refuse impossible options before the trace is read."""
    require_engine()
    output = Output(
        as_json=wanted["as_json"],
        parquet=wanted["parquet"],
        plot=wanted["plot"],
        theme=wanted["theme"] or "light",
        force=wanted["force"],
        in_bytes=in_bytes,
    )
    prepare(output)
    return output


def ask_kinds(
    trace: Path,
    by: str,
    *,
    number: int | None,
    each_gc: bool,
    in_bytes: bool,
    top: int,
    **wanted: Unpack[QueryOptions],
) -> None:
    """Query the fate of objects, by type or by site: over the whole trace, in one collection, or in each."""
    if number is not None and each_gc:
        raise click.UsageError("--gc shows one collection and --each-gc shows all: choose one")
    output = _prepare(wanted, in_bytes=in_bytes)
    from gcspy_objects.analysis.kinds import (
        GroupBy,
        ObjectFilter,
        collections,
        each_collection,
        in_collection,
        totals,
    )

    only = ObjectFilter(wanted["type"], wanted["site"])
    with lives_of(trace) as store:
        if each_gc:
            found = each_collection(store, GroupBy(by), only, top=top or 1 << 30, by_bytes=in_bytes)
        elif number is not None:
            found = in_collection(store, GroupBy(by), number, only, by_bytes=in_bytes, top=top)
        else:
            found = totals(store, GroupBy(by), only, by_bytes=in_bytes, top=top)
        show(
            found,
            store,
            output,
            drawn=("collections", collections(store, only)) if output.plot else None,
        )


def ask_churn(
    trace: Path, *, within_bytes: int, in_bytes: bool, top: int, **wanted: Unpack[QueryOptions]
) -> None:
    """Query which objects are freed soon after their birth."""
    output = _prepare(wanted, in_bytes=in_bytes)
    from gcspy_objects.analysis.churn import churn
    from gcspy_objects.analysis.kinds import ObjectFilter, collections

    only = ObjectFilter(wanted["type"], wanted["site"])
    with lives_of(trace) as store:
        found = churn(store, only, within_bytes=within_bytes, by_bytes=in_bytes, top=top)
        drawn = ("collections", collections(store, only)) if output.plot else None
        show(found, store, output, drawn=drawn)


def ask_growth(trace: Path, *, top: int, as_json: bool) -> None:
    """Query which objects the second half of the collections added, where they were allocated, and who holds them."""
    require_engine()
    from gcspy_objects.analysis.kinds import growth

    with lives_and_heap_of(trace) as (store, heap):
        found = growth(store, len(store.collections) // 2, top=top)
        if heap.trace.has_pointers:
            from gcspy.objects.growth_holders import with_holders

            found = with_holders(found, heap)
        show(found, store, Output(as_json=as_json, in_bytes=True))


def ask_collections(trace: Path, *, in_bytes: bool, **wanted: Unpack[QueryOptions]) -> None:
    """Query what happened in each collection."""
    output = _prepare(wanted, in_bytes=in_bytes)
    from gcspy_objects.analysis.kinds import ObjectFilter, collections

    with lives_of(trace) as store:
        found = collections(store, ObjectFilter(wanted["type"], wanted["site"]))
        show(found, store, output, drawn=("collections", found))


def ask_lifetimes(
    trace: Path,
    *,
    each: str | None,
    clock: str,
    in_bytes: bool,
    top: int,
    **wanted: Unpack[QueryOptions],
) -> None:
    """Query how long objects lived: all of them, or those of each type or site."""
    output = _prepare(wanted, in_bytes=in_bytes)
    from gcspy_objects.analysis.kinds import GroupBy, ObjectFilter
    from gcspy_objects.analysis.lifetimes import distribution, spans
    from gcspy_objects.analysis.survival import AgeClock

    only = ObjectFilter(wanted["type"], wanted["site"])
    with lives_of(trace) as store:
        ages = distribution(store, AgeClock(clock), only)
        found = (
            ages if each is None else spans(store, GroupBy(each), AgeClock(clock), only, top=top)
        )
        show(found, store, output, drawn=(f"lifetimes.{clock}", ages))


def ask_survival(
    trace: Path, *, clock: str, points: int, in_bytes: bool, **wanted: Unpack[QueryOptions]
) -> None:
    """Query the share that is still present at each age."""
    output = _prepare(wanted, in_bytes=in_bytes)
    from gcspy_objects.analysis.kinds import ObjectFilter
    from gcspy_objects.analysis.survival import AgeClock, survival

    only = ObjectFilter(wanted["type"], wanted["site"])
    with lives_of(trace) as store:
        found = survival(store, AgeClock(clock), only, points=points)
        drawn = (
            survival(store, AgeClock(clock), only, points=_DRAWN_POINTS) if output.plot else found
        )
        show(found, store, output, drawn=(f"survival.{clock}", drawn))
