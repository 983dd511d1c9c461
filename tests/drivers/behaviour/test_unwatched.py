"""Without clients nothing is gathered, and every event is counted."""

from __future__ import annotations

import pytest

from gcspy_server.api import Event
from tests.drivers.behaviour.conftest import Classes
from tests.drivers.behaviour.subjects import AttachedSubject, Behaviour, Case, Embedded, having


def count(case: Case, monkeypatch: pytest.MonkeyPatch, *, watched: bool) -> tuple[int, int, int]:
    """Let events happen; return how many happened, were gathered, and were sent."""
    gathered: list[object] = []
    events: list[Event] = []
    gather = getattr(case.gatherer, case.gathering)

    def gathering(request: object) -> None:
        gathered.append(request)
        gather(request)

    monkeypatch.setattr(case.gatherer, case.gathering, gathering)
    if watched:
        case.server.add_observer(events.append)
    case.happen()
    return sum(case.server.counts()), len(gathered), len(events)


@pytest.mark.parametrize("watched", [False, True], ids=["unwatched", "watched"])
@pytest.mark.parametrize("subject", having(Behaviour.UNWATCHED))
def test_for_nobody_nothing_is_gathered_and_everything_is_counted(
    subject: AttachedSubject | Embedded,
    watched: bool,
    classes: Classes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if isinstance(subject, Embedded):
        with subject.case() as case:
            happened, gathered, sent = count(case, monkeypatch, watched=watched)
    else:
        with subject.target(classes) as target:
            target.hold()
            with subject.watch(target) as attached:
                happened, gathered, sent = count(attached, monkeypatch, watched=watched)
    assert happened > 0
    assert (gathered, sent) == ((happened, happened) if watched else (0, 0))
