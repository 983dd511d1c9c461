"""A browser that all tests of a file share, and pages of recordings."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_replay.file import Recording
from gcspy_replay.samples import samples

from gcspy_client.page import page_of_recording
from tests.client.page.browser import BROWSERS, Browser


def started(kind: str, **size: int) -> Iterator[Browser]:
    """A browser, if it is installed."""
    if shutil.which(BROWSERS[kind].program) is None:
        pytest.skip(
            f"{BROWSERS[kind].program} is not installed: apt-get install {BROWSERS[kind].program}"
        )
    with (
        tempfile.TemporaryDirectory(prefix="gcspy-browser-", ignore_cleanup_errors=True) as folder,
        BROWSERS[kind](Path(folder), **size) as browser,
    ):
        yield browser


@pytest.fixture(
    scope="module", params=["chromium", pytest.param("firefox", marks=pytest.mark.matrix)]
)
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Each browser."""
    yield from started(request.param)


@pytest.fixture(scope="module")
def program(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """A browser with the page's program, for tests of its parts."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    with Recording.open(samples()[1].path) as recording:
        path.write_bytes(page_of_recording(recording, title="a").data)
    browser.open(path.as_uri())
    return browser
