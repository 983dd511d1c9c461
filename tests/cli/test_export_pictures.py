"""`gcspy export` into a folder of PNG files and into an animated GIF."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gcspy_replay.file import ChunkRule
from PIL import Image

from gcspy.cli import main
from gcspy.exit_codes import ExitCode
from tests.matrix import matrix
from tests.replay.recorded import small

EVENTS = 12
SMALL = ("--size", "320x200")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcspy"
    path.write_bytes(small(EVENTS, rule=ChunkRule(weight=99, most_events=4), tiles=200))
    return path


def test_a_folder_has_a_picture_an_event_and_an_index(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shots"
    assert main(["export", str(path), "-o", f"{folder}/", *SMALL]) == ExitCode.OK
    assert "12 pictures" in capsys.readouterr().out
    index = json.loads((folder / "index.json").read_text())
    assert [entry["file"] for entry in index["events"]] == [f"{n:06}.png" for n in range(1, 13)]
    assert sorted(p.name for p in folder.iterdir()) == [f"{n:06}.png" for n in range(1, 13)] + [
        "index.json"
    ]
    third = index["events"][2]
    assert (third["number"], third["event"], third["occurrence"], third["seconds"]) == (
        3,
        "collection",
        3,
        0.2,
    )
    assert third["wall_nanos"] == 1_700_000_000_000_000_000 + 300_000_000
    contents = set()
    for entry in index["events"]:
        with Image.open(folder / entry["file"]) as image:
            assert image.size == (320, 200)
            contents.add(image.tobytes())
    assert len(contents) == 12, "each event looks different"


def test_range_kind_and_every_choose_the_events(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shots"
    chosen = ["--first", "2", "--kind", "clock", "--every", "3"]
    assert (
        main(["export", str(path), "-o", f"{folder}/", *SMALL, *chosen, "--space", "heap"])
        == ExitCode.OK
    )
    assert sorted(p.name for p in folder.glob("*.png")) == [
        "000002.png",
        "000007.png",
        "000011.png",
    ]
    alone = tmp_path / "alone"
    one = ["--first", "7", "--last", "7", "--space", "heap"]
    assert main(["export", str(path), "-o", f"{alone}/", *SMALL, *one]) == ExitCode.OK
    assert (alone / "000007.png").read_bytes() == (folder / "000007.png").read_bytes()


def test_a_gif_takes_as_long_as_the_events_did(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "a.gif"
    assert main(["export", str(path), "-o", str(new), *SMALL, "--speed", "0.5"]) == ExitCode.OK
    assert "12 frames" in capsys.readouterr().out
    with Image.open(new) as image:
        assert image.size == (320, 200)
        durations = []
        for i in range(getattr(image, "n_frames", 0)):
            image.seek(i)
            durations.append(image.info["duration"])
    assert durations == [200] * 11 + [1000]


def test_too_many_frames_are_thinned_evenly_and_that_is_said(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "a.gif"
    assert main(["export", str(path), "-o", str(new), *SMALL, "--most-frames", "4"]) == ExitCode.OK
    told = capsys.readouterr()
    assert "4 frames" in told.out
    assert "8 events were omitted at even intervals" in told.err
    with Image.open(new) as image:
        assert getattr(image, "n_frames", 0) == 4


def test_what_a_gif_cannot_keep_up_with_is_said(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["export", str(path), "-o", str(tmp_path / "a.gif"), *SMALL, "--speed", "1000"])
        == ExitCode.OK
    )
    assert "closer together than GIF frames" in capsys.readouterr().err


def test_a_tile_has_the_colour_of_its_legend_in_every_frame(path: Path, tmp_path: Path) -> None:
    """A frame of the GIF, with one palette for all, has the tiles of the PNG of the same event, to the last pixel."""
    folder, new = tmp_path / "shots", tmp_path / "a.gif"
    assert (
        main(["export", str(path), "-o", f"{folder}/", "--size", "640x400", "--space", "heap"])
        == ExitCode.OK
    )
    assert (
        main(["export", str(path), "-o", str(new), "--size", "640x400", "--space", "heap"])
        == ExitCode.OK
    )
    with Image.open(new) as image:
        for i in range(12):
            image.seek(i)
            frame = np.asarray(image.convert("RGB"))[80:260, 20:600]
            with Image.open(folder / f"{i + 1:06}.png") as picture:
                assert np.array_equal(frame, np.asarray(picture.convert("RGB"))[80:260, 20:600])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "x.csv", "--speed", "2"], "--speed does not apply to a table"),
        (["-o", "x.gif", "--tiles"], "--tiles does not apply to a GIF"),
        (["-o", "x/", "--speed", "2"], "--speed does not apply to a folder"),
        (["-o", "x.gif", "--stream", "Used"], "--stream needs --space"),
        (["-o", "x"], "put a slash at the end: x/"),
        (["-o", "x.gif", "--size", "7x7"], "a size is WIDTHxHEIGHT"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    arguments: list[str], said: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(path), *arguments]) == ExitCode.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--space", "none"], "no space 'none' in the recording; there are: heap"),
        (["--kind", "none"], "no kind of event 'none'"),
        (["--last", "99"], "it has 1 to 12"),
        (
            ["--first", "1", "--last", "2", "--kind", "collection"],
            "no event collection from 1 to 2",
        ),
    ],
)
def test_what_the_recording_does_not_have_is_named(
    arguments: list[str], said: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for output in (f"{tmp_path}/x/", f"{tmp_path}/x.gif"):
        assert main(["export", str(path), "-o", output, *arguments]) == ExitCode.RECORDING
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("package", "extra"), [("PIL", "export"), ("PySide6", "gui")])
def test_without_a_package_one_line_names_the_remedy(
    package: str,
    extra: str,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["export", str(path), "-o", str(tmp_path / "a.gif")]) == ExitCode.MISSING_PART
    said = capsys.readouterr().err
    assert f"pip install '.[{extra}]'" in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_replaced_only_if_it_holds_such_pictures(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shots"
    folder.mkdir()
    few = ["export", str(path), "-o", str(folder), *SMALL, "--every", "6", "--space", "heap"]
    assert main(few) == ExitCode.OK, "an empty folder may be there"
    assert main(few) == ExitCode.USAGE
    assert "--force" in capsys.readouterr().err
    (folder / "thesis.txt").write_text("mine")
    assert main([*few, "--force"]) == ExitCode.USAGE
    assert (folder / "thesis.txt").read_text() == "mine"
    (folder / "thesis.txt").unlink()
    assert main([*few, "--force", "--first", "2"]) == ExitCode.OK
    assert sorted(p.name for p in folder.glob("*.png")) == ["000002.png", "000008.png"]


@pytest.mark.parametrize("output", matrix(["shots/", "a.gif"], usual=["a.gif"]))
def test_ctrl_c_leaves_no_half_file(output: str, path: Path, tmp_path: Path) -> None:
    path.write_bytes(small(3000, tiles=2000))
    code = (
        "import sys, gcspy_client.pictures as p\n"
        "take = p.Camera.take\n"
        "def told(self):\n"
        "    print('taken', flush=True)\n"
        "    return take(self)\n"
        "p.Camera.take = told\n"
        "from gcspy.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = ["export", str(path), "-o", f"{tmp_path}/{output}", *SMALL, "--most-frames", "3000"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline() == "taken\n"
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert process.returncode == ExitCode.INTERRUPTED
    assert list(tmp_path.iterdir()) == [path]
