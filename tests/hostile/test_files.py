"""A hostile recording under a hostile name, with hostile bookmarks, opened in a window: characters are shown, nothing else happens."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest
from gcspy_protocol.text.visible import visible
from gcspy_replay.file.sidecar import Bookmark, Sidecar, sidecar_path, write_sidecar

from gcspy.hosts.launcher import front_door
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait
from tests.hostile.corpus import corpus
from tests.hostile.file_names import file_names
from tests.hostile.seen import Shown, shown_texts
from tests.hostile.sentinel import Sentinel
from tests.hostile.session import EVENTS
from tests.hostile.test_recordings import recorded
from tests.hostile.test_window import NAMES_OF_TEXTS, faults
from tests.hostile.walk import walked
from tests.replay.recorded import FACTS

NAMES_OF_FILES = list(file_names(Path("/sentinel.png")))

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"


def text_at(texts: dict[str, str], turn: int) -> str:
    """One of the texts; in as many turns as there are each has come."""
    return list(texts.values())[turn % len(texts)]


def marked(path: Path, texts: dict[str, str], turn: int) -> None:
    """Put bookmarks beside a recording, as a sender of both may do."""
    bookmarks = tuple(
        Bookmark(
            number=number,
            title=text_at(texts, turn + number)[:500].encode("utf-8", "replace").decode(),
            note=text_at(texts, turn + number + 7).encode("utf-8", "replace").decode(),
        )
        for number in range(1, EVENTS + 1)
    )
    notes = text_at(texts, turn).encode("utf-8", "replace").decode()
    write_sidecar(
        sidecar_path(path), Sidecar(recording=FACTS.recording, bookmarks=bookmarks, notes=notes)
    )


def looked_at(window: MainWindow, wait: Wait, name: str, folder: Path) -> list[Shown]:
    """All that is shown of what is open: everywhere, and where names of files are."""
    found = walked(window)
    window.help.palette.open()
    window.help.show_keys()
    dialog = window.time.save_session()
    assert dialog is not None
    dialog.path.setText(str(folder / name))
    found += shown_texts()
    dialog.start.click()  # it is there already, or cannot be written
    wait(lambda: bool(dialog.said.text()) or not dialog.isVisible())
    found += shown_texts()
    dialog.close()
    window.help.palette.close()
    assert_pictures(window, wait, folder)
    window.opener.open_page()
    window.settle()
    lines = "\n" in name  # such a path is not kept
    assert lines != bool(window.opener.recent()), "it is among what was opened lately"
    found += shown_texts()
    return found


def assert_pictures(window: MainWindow, wait: Wait, folder: Path) -> None:
    """Check that exported history graphs are pictures with texts in them, and refer to no other file."""
    window.docks.show("history")
    panel, export = window.history.panel, window.history.menus.export
    wait(lambda: panel.first.canvas.drawn is not None)
    said: list[str] = []
    export.ended.connect(said.append)
    for number, suffix in enumerate((".svg", ".png"), 1):
        export.picture(folder / f"history{suffix}")
        wait(partial(lambda wanted: len(said) == wanted, number))
        window.settle()
    root = ET.parse(folder / "history.svg").getroot()
    links = {one.get(_LINK, "") or one.get("href", "") for one in root.iter(f"{_SVG}image")}
    assert links
    assert all(link.startswith("data:image/png;base64,") for link in links)
    kinds = {one.tag.removeprefix(_SVG) for one in root.iter()}
    assert not kinds & {"script", "style", "a", "use", "foreignObject"}


def not_opened(window: MainWindow, wait: Wait, folder: Path, name: str) -> list[Shown]:
    """The message for a missing file, and for one that is not a recording."""
    window.opener.play([folder / f"gone {name}"])
    found = list(shown_texts())
    broken = folder / f"{name} broken.gcspy"
    broken.write_bytes(b"<b>no recording</b>")
    window.opener.play([broken])
    wait(lambda: window.opener.child.starting is None)
    window.settle()
    return [*found, *shown_texts()]


def assert_harmless(
    make_window: MakeWindow, wait: Wait, sentinel: Sentinel, folder: Path, turn: int
) -> None:
    texts, names = corpus(sentinel.path), file_names(sentinel.path)
    name = text_at(names, turn)
    path = folder / f"{name}.gcspy"
    recorded(path, texts, turn)
    marked(path, texts, turn)
    window = make_window(front=front_door())
    size = window.size()
    window.opener.play([path])
    wait(lambda: window.session.events_seen >= 1)
    window.settle()
    found = looked_at(window, wait, name, folder)
    found += not_opened(window, wait, folder, name)
    assert not faults(found)
    assert not sentinel.opened()
    assert window.size() == size
    assert window.minimumSizeHint().width() <= size.width(), "no text is as wide as it likes"
    letters = "".join(filter(str.isalnum, visible(name)))[:8]
    assert any(letters in "".join(filter(str.isalnum, one.text)) for one in found)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the sentinel, which is the working directory: what names the picture without a folder finds it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("turn", [0])
def test_a_hostile_recording_of_a_hostile_name_is_shown_letter_by_letter(
    make_window: MakeWindow, wait: Wait, sentinel: Sentinel, folder: Path, turn: int
) -> None:
    assert_harmless(make_window, wait, sentinel, folder, turn)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(max(len(NAMES_OF_FILES), len(NAMES_OF_TEXTS))))
def test_each_field_and_each_name_of_a_file(
    make_window: MakeWindow, wait: Wait, sentinel: Sentinel, folder: Path, turn: int
) -> None:
    assert_harmless(make_window, wait, sentinel, folder, turn)
