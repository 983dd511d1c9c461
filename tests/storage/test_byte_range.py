"""A web server that answers a range with a body without an end: it is an error, and little of it is read."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from gcspy_protocol.errors import RecordingError

pytest.importorskip("aiohttp", reason="needs the extra storage")

from gcspy.storage.remote_source import open_address

_PIECE = bytes(1 << 20)


class EndlessAnswers(BaseHTTPRequestHandler):
    """Claims a file of a megabyte, and sends zeros for as long as somebody reads."""

    sent = 0
    most = 1 << 30

    def do_HEAD(self) -> None:
        """Describe the file."""
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()

    def do_GET(self) -> None:
        """Answer a range."""
        self.send_response(206)
        self.send_header("Content-Range", "bytes 0-65535/1000000")
        self.end_headers()
        try:
            while EndlessAnswers.sent < self.most:
                self.wfile.write(_PIECE)
                EndlessAnswers.sent += len(_PIECE)
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_no_more_is_read_than_was_asked_for() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), EndlessAnswers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            (source,) = open_address(f"http://127.0.0.1:{server.server_port}/demo.gcspy")
            with pytest.raises(RecordingError, match="gave more bytes from byte 0 on"):
                source.read_at(0, 100)
            source.close()
        finally:
            server.shutdown()
            thread.join()
    assert 0 < EndlessAnswers.sent < 64 << 20
