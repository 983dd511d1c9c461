"""Whatever happens to lines, disks, clocks and clients: the target works on, others continue, and the recording is whole."""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.soak.disturbances import KINDS, Disturbances
from tests.soak.kills import Fault
from tests.soak.test_kills import ONE_ROUND, small_scene

ROUNDS = "GCSPY_SOAK_DISTURBANCES"

_MOST_FAULTS = 20
"""No more rounds begin after this time."""


def test_one_disturbance_of_each_kind() -> None:
    seed = random.randrange(1 << 30)
    with small_scene() as stands:
        for kind in KINDS:
            rounds = Disturbances(stands, seed)
            rounds.kinds = (kind,)
            rounds.round(0)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_500_disturbances(soak_seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    first, count, seed = 0, int(os.environ.get(ROUNDS, "500")), soak_seed
    if wanted := os.environ.get(ONE_ROUND):
        seed, first = map(int, wanted.split(":"))
        count = 1
    with small_scene() as stands:
        rounds = Disturbances(stands, seed)
        for number in range(first, first + count):
            began = time.monotonic()
            try:
                told = str(rounds.round(number))
            except Fault as fault:
                rounds.faults.append(str(fault))
                told = f"FAULT {fault}"
            with capsys.disabled():
                print(f"{number} {time.monotonic() - began:.1f} s {told}", flush=True)
            if len(rounds.faults) >= _MOST_FAULTS:
                break
    with capsys.disabled():
        print(f"\n{rounds.told()}", flush=True)
    assert not rounds.faults, "\n\n".join(rounds.faults)
