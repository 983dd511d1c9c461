"""Counted sites and an object trace of the same programs agree, where both see the same."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks.cpython import counts_beside_trace
from tests.drivers.targets import find_python


@pytest.mark.soak
def test_counts_and_traces_agree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = find_python("3.13")
    if python is None:
        pytest.skip("no Python 3.13 on PATH or in ~/.pyenv/versions: only it traces each object")
    monkeypatch.setattr(sys, "argv", ["counts_beside_trace", "--python", python, "--json"])
    assert counts_beside_trace.main() == 0
    results = json.loads(capsys.readouterr().out)
    assert [each["differing"] for each in results] == [{}] * 3
    assert sum(each["equal"] for each in results) >= 20
    assert sum(each["outside"] for each in results) > 0
