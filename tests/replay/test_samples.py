"""The samples open, are intact, have what their README promises, and reveal nothing about their makers."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from gcspy_replay.file import FileSource, Recording, verify
from gcspy_replay.samples import samples

SAMPLES = Path(__file__).resolve().parents[2] / "replay" / "samples"
SPACES = {
    "demo-cpython-3.11.gcspy": [
        "pymalloc arenas",
        "Size classes",
        "GC generations",
        "Process memory",
    ],
    "semispace.gcspy": ["Semispaces"],
}
MOST_BYTES = 300_000
SYSTEM = ("/usr/", "/lib", "/proc/", "/dev/")
FOLDER = re.compile(r"(?<![\w.)])/[\w.-]+/")


def test_these_are_all_samples_and_the_readme_names_each() -> None:
    assert {path.name for path in SAMPLES.glob("*.gcspy")} == set(SPACES)
    assert {sample.path for sample in samples()} == set(SAMPLES.glob("*.gcspy"))
    assert all(sample.title and sample.about.endswith(".") for sample in samples())
    readme = (SAMPLES / "README.md").read_text()
    assert all(name in readme for name in SPACES)


@pytest.mark.parametrize("name", SPACES)
def test_a_sample_is_intact_and_has_its_spaces(name: str) -> None:
    path = SAMPLES / name
    assert path.stat().st_size <= MOST_BYTES
    with FileSource(path) as source:
        report = verify(source)
    assert (report.intact, report.findings) == (True, [])
    with Recording.open(path) as recording:
        assert recording.indexed
        assert len(recording) == report.events >= 30
        session = recording.seek(recording.last)
        assert [state.space.name for state in session.spaces.values()] == SPACES[name]
        assert all(state.count > 0 for state in session.spaces.values())


def test_the_demo_shows_arenas_that_come_and_go() -> None:
    with Recording.open(SAMPLES / "demo-cpython-3.11.gcspy") as recording:
        counts = [next(iter(session.spaces.values())).count for _, session in recording.steps()]
        times = recording.events["time_nanos"]
    changes = np.diff(counts)
    assert (changes > 0).any()
    assert (changes < 0).any()
    assert int(times[-1]) - int(times[0]) > 15_000_000_000


def test_the_semispace_alternates_between_its_halves() -> None:
    with Recording.open(SAMPLES / "semispace.gcspy") as recording:
        fuller = []
        for step, session in recording.steps():
            if session.event_name(step.change.event.event).endswith("End"):
                (space,) = session.spaces.values()
                used = next(iter(space.streams.values())).values.astype(np.int64)
                half = len(used) // 2
                fuller.append(bool(used[:half].sum() > used[half:].sum()))
    assert len(fuller) >= 40
    assert all(a != b for a, b in pairwise(fuller))


@pytest.mark.parametrize("name", SPACES)
def test_a_sample_tells_nothing_of_who_made_it(name: str) -> None:
    with Recording.open(SAMPLES / name) as recording:
        texts = [
            recording.welcome.server,
            recording.welcome.general_info,
            recording.facts.note,
            *recording.welcome.target.values(),
        ]
        for _, session in recording.steps():
            for state in session.spaces.values():
                texts += [
                    state.space.name,
                    state.info,
                    *(state.names.name(tile) for tile in range(state.count)),
                ]
    folders = {found for text in texts for found in FOLDER.findall(text)}
    assert all(folder.startswith(SYSTEM) for folder in folders), folders
