"""Every driver stands in the table, with each behaviour or the reason why it cannot have it."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest
from gcspy_protocol.settings import SettingKind

from gcspy_server.api import ENTRY_POINT_GROUP, LEVEL
from gcspy_server.interpreter.cost_accounting import BUDGET
from tests.drivers.behaviour.subjects import (
    SUBJECTS,
    AttachedSubject,
    Behaviour,
    Embedded,
    Served,
)

ELSEWHERE = {
    "cpython-free-threaded": "no build without a lock is to be had: tests/drivers/cpython/test_free_threaded.py",
}
"""Installed drivers that are not in the table, with the reason."""


def test_every_installed_driver_is_in_the_table() -> None:
    ours = {
        one.name for one in entry_points(group=ENTRY_POINT_GROUP) if "gcspy_drivers." in one.value
    }
    assert ours - ELSEWHERE.keys() <= {one.name for one in SUBJECTS}
    assert set(ELSEWHERE) <= ours


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_what_a_driver_lacks_has_a_reason(subject: AttachedSubject | Embedded | Served) -> None:
    assert all(len(reason.split()) > 4 for reason in subject.lacks.values())
    assert Behaviour.UNWATCHED not in subject.lacks or isinstance(subject, Served)
    if isinstance(subject, AttachedSubject):
        assert set(subject.lacks) <= {Behaviour.LEVELS}, (
            "it watches a process: it can have the rest"
        )
        return
    with subject.case() as case:
        settings = {one.id: one for one in case.server.settings}
        assert BUDGET not in settings
        assert LEVEL not in settings or settings[LEVEL].kind is SettingKind.CHOICE
