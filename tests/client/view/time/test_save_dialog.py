"""Saving a session while it is watched."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gcspy_replay.file import Recording

from gcspy_client.view.time.save_dialog import SaveDialog, SaveOffer
from tests.client.conftest import MakeWindow
from tests.client.watching import EVENTS, Wait, Watched
from tests.waiting import PATIENCE_SECS


class SlowSave:
    """A save operation that waits for each event until the test releases it."""

    def __init__(self) -> None:
        self.steps = threading.Semaphore(0)
        self.begun = threading.Event()
        self.ended = False

    def __call__(
        self,
        path: Path,
        first: int | None,
        last: int | None,
        *,
        replace: bool,
        progress: Callable[[int, int], None],
    ) -> int:
        self.begun.set()
        try:
            for done in range(1, 101):
                assert self.steps.acquire(timeout=PATIENCE_SECS)
                progress(done, 100)
        finally:
            self.ended = True
        return 100


def test_a_session_is_saved_whole_and_can_be_opened_again(
    watched: Watched, tmp_path: Path, wait: Wait
) -> None:
    dialog = watched.window.time.save_session()
    assert dialog is not None
    assert dialog.whole.isChecked()
    assert f"{EVENTS} events, 1 to {EVENTS}" in dialog.whole.text()
    assert not dialog.range.isEnabled()
    path = tmp_path / "session.gcspy"
    dialog.path.setText(str(path))
    dialog.start.click()
    watched.program.let_happen()  # the session continues meanwhile
    wait(lambda: "saved to" in dialog.said.text())
    with Recording.open(path) as saved:
        assert saved.finished
        for number, heap in watched.heaps.items():
            assert np.array_equal(saved.seek(number).spaces[1].streams[0].values, heap)


def test_what_is_there_already_is_replaced_only_when_the_button_says_so(
    watched: Watched, tmp_path: Path, wait: Wait
) -> None:
    path = tmp_path / "session.gcspy"
    path.write_text("precious")
    dialog = watched.window.time.save_session()
    assert dialog is not None
    dialog.path.setText(str(path))
    assert dialog.start.text() == "Replace"
    assert "would be overwritten" in dialog.said.text()
    dialog.start.setText("Save")  # as if the file had come after the user looked
    dialog.start.click()
    wait(lambda: "exists already" in dialog.said.text())
    assert path.read_text() == "precious"


def test_a_folder_that_does_not_exist_is_said(watched: Watched, tmp_path: Path, wait: Wait) -> None:
    dialog = watched.window.time.save_session()
    assert dialog is not None
    dialog.path.setText(str(tmp_path / "nowhere" / "a.gcspy"))
    dialog.start.click()
    wait(lambda: "There is no folder" in dialog.said.text())
    assert dialog.start.isEnabled()


def test_progress_is_told_while_the_window_lives_and_cancelling_ends_it(
    make_window: MakeWindow, tmp_path: Path, wait: Wait
) -> None:
    window = make_window()
    save = SlowSave()
    dialog = SaveDialog(
        SaveOffer(save=save, whole=(1, 100), chosen=None, name="slow"), tmp_path, window
    )
    dialog.keep_out_of_the_way()
    dialog.start.click()
    save.steps.release(1)
    wait(lambda: dialog.bar.value() == 1)
    assert "1 of 100 events" in dialog.said.text()
    save.steps.release(1)
    dialog.cancel.click()
    assert save.ended
    assert not dialog._saving.running
    assert not dialog.isVisible()


def test_closing_the_window_in_the_middle_of_a_saving_leaves_no_thread_and_no_file(
    watched: Watched, tmp_path: Path
) -> None:
    dialog = watched.window.time.save_session()
    assert dialog is not None
    dialog.path.setText(str(tmp_path / "cut-short.gcspy"))
    dialog.start.click()
    watched.window.close()
    assert not dialog._saving.running
    left = [path.name for path in tmp_path.iterdir() if path.name != "cut-short.gcspy"]
    assert not left, "no half file is left beside it"


def test_whatever_is_typed_as_a_name_is_refused_in_words_or_saved(
    watched: Watched, tmp_path: Path, wait: Wait
) -> None:
    dialog = watched.window.time.save_session()
    assert dialog is not None
    for typed in (
        "/",
        ".",
        "~nobody-of-this-name/x",
        "n" * 300,
        f"{tmp_path}/{'n' * 300}",
    ):
        dialog.path.setText(typed)
        dialog.start.click()
        wait(lambda: not dialog._saving.running)
        assert dialog.said.text(), typed
        assert "saved to" not in dialog.said.text(), typed
