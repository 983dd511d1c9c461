"""The page: a recording, a lesson or a live session in a web browser.

* `page_of_recording`: one HTML file with a recording in it, which needs no server and makes no request.
* `page_of_session`: the page that a served session gives to browsers.

The page's own program is the JavaScript of this folder, in the order of `document.SCRIPTS`; nothing is built. Knows recordings, lessons and
palettes; does not know windows, sockets or drivers.
"""

from __future__ import annotations

from gcspy_client.page.document import page_of_session
from gcspy_client.page.recorded_page import (
    MOST_PAGE_BYTES,
    PageSelection,
    RecordedPage,
    page_of_recording,
)

__all__ = [
    "MOST_PAGE_BYTES",
    "PageSelection",
    "RecordedPage",
    "page_of_recording",
    "page_of_session",
]
