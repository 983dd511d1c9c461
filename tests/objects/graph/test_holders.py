"""The holders of some objects: planted ones, counted."""

from __future__ import annotations

import numpy as np
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.graph.holders import HolderGroup, holders
from gcspy_objects.graph.references import ReferenceGraph


class Plan:
    """A graph under construction: objects are numbered as they are made."""

    def __init__(self) -> None:
        self.references: list[list[int]] = []
        self.roots: list[int] = []
        self.transparent: list[int] = []

    def one(self, *by: int) -> int:
        """Make an object that others refer to."""
        self.references.append([])
        made = len(self.references) - 1
        for each in by:
            self.references[each].append(made)
        return made

    def many(self, count: int, *by: int) -> list[int]:
        """Make this many, each referred to by the same objects."""
        return [self.one(*by) for _ in range(count)]

    def ask(self, chosen: list[int], bytes_each: int = 10, most: int = 12) -> list[HolderGroup]:
        """Query the holders of some."""
        nodes = len(self.references)
        starts = np.cumsum([0, *map(len, self.references)])
        targets = [each for some in self.references for each in some]
        graph = ReferenceGraph(
            starts.astype(np.int64),
            np.array(targets, dtype=np.int32),
            np.array(self.roots, dtype=np.int32),
        )
        transparent = np.zeros(nodes, dtype=np.bool_)
        transparent[self.transparent] = True
        own = np.full(nodes, bytes_each, dtype=np.int64)
        return holders(
            graph,
            dominators(graph),
            np.array(chosen, dtype=np.int32),
            own,
            transparent,
            most=most,
        )


def program() -> tuple[Plan, int]:
    """A program with one module, through which is looked."""
    plan = Plan()
    module = plan.one()
    plan.roots = [module]
    plan.transparent = [module]
    return plan, module


def test_a_list_that_holds_all_is_named_and_not_the_application_above_it() -> None:
    plan, module = program()
    application = plan.one(module)
    audit = plan.one(plan.one(application))
    orders = plan.many(50, audit)
    other = plan.many(3, plan.one(application))
    assert plan.ask(orders) == [HolderGroup((audit,), 1, 50, 500, orders[0])]
    (both,) = plan.ask(orders + other)
    assert both.holders == (audit,), "it dominates 50 of 53"
    (fewer,) = plan.ask(orders[:4] + other)
    assert fewer.holders == (application,), "4 of 7 are not most of them"


def test_several_lists_are_several_groups_the_largest_first() -> None:
    plan, module = program()
    small, large = plan.one(module), plan.one(module)
    few, many = plan.many(3, small), plan.many(9, large)
    assert plan.ask(few + many) == [
        HolderGroup((large,), 1, 9, 90, many[0]),
        HolderGroup((small,), 1, 3, 30, few[0]),
    ]
    assert plan.ask(few + many, most=1) == [HolderGroup((large,), 1, 9, 90, many[0])]


def test_objects_that_two_hold_independently_are_grouped_by_who_these_are() -> None:
    plan, module = program()
    cache, index, log = (plan.one(module) for _ in range(3))
    both = plan.many(7, cache, index)
    others = plan.many(5, index, log)
    alone = plan.many(2, log)
    assert plan.ask(both + others + alone) == [
        HolderGroup((cache, index), 2, 7, 70, both[0]),
        HolderGroup((index, log), 2, 5, 50, others[0]),
        HolderGroup((log,), 1, 2, 20, alone[0]),
    ]


def test_a_module_that_refers_to_an_object_directly_is_the_only_holder_there_is_to_name() -> None:
    plan, module = program()
    table = plan.one(module)
    assert plan.ask([table]) == [HolderGroup((module,), 1, 1, 10, table)]


def test_of_many_holders_four_are_listed_and_all_are_counted() -> None:
    plan, module = program()
    shared = [plan.one(module) for _ in range(9)]
    (group,) = plan.ask([plan.one(*shared)])
    assert group.independent == 9
    assert group.holders == tuple(shared[:4])


def test_a_cycle_and_a_reference_to_itself_do_not_hold() -> None:
    plan, module = program()
    holder = plan.one(module)
    first = plan.one(holder)
    second = plan.one(first)
    plan.references[second].append(first)
    plan.references[first].append(first)
    (group,) = plan.ask([second])
    assert group.holders == (first,)
    (group,) = plan.ask([first])
    assert group.holders == (holder,)


def test_what_no_root_reaches_is_in_no_group() -> None:
    plan, module = program()
    garbage = plan.one()
    assert plan.ask([garbage]) == []
    held = plan.one(plan.one(module), garbage)
    (group,) = plan.ask([held, garbage])
    assert (group.objects, group.independent) == (1, 1), "garbage holds nothing"


def test_a_root_itself_is_its_own_holder() -> None:
    plan = Plan()
    local = plan.one()
    plan.roots = [local]
    assert plan.ask([local]) == [HolderGroup((local,), 1, 1, 10, local)]
