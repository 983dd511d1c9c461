"""The list of participants, in words."""

from __future__ import annotations

from gcspy_client.model.attendance import Participant, summary_words


def one(
    number: int,
    *,
    leads: bool = False,
    following: bool = False,
    behind: int = 0,
    stalled: bool = False,
) -> Participant:
    return Participant(
        number=number,
        name=f"n{number}",
        ours=False,
        leads=leads,
        controls=False,
        succeeds=False,
        following=following,
        behind=behind,
        stalled=stalled,
    )


def test_one_is_alone_and_two_are_present() -> None:
    assert summary_words([]) == "No other participants."
    assert summary_words([one(1)]) == "No other participants."
    assert summary_words([one(1), one(2)]) == "2 present"


def test_who_leads_does_not_follow_and_who_is_stalled_is_not_behind() -> None:
    present = [
        one(1, leads=True, following=True),
        one(2, following=True, behind=3),
        one(3, behind=9, stalled=True),
    ]
    assert summary_words(present) == "3 present, 1 follow, 1 behind, 1 stalled"
