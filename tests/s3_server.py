"""A small server of S3's protocol on the loopback interface, for tests: objects in memory, ranges, listings, uploads in parts.

It counts requests, and can be slow or failing. It compares no signature: what it is sent of credentials is kept for tests to look at.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

__all__ = ["S3Server", "s3_server"]


@dataclass
class S3Server:
    """What is stored, and how it is served.

    Attributes:
        address: Of the server.
        objects: By bucket and key.
        requests: Method and path of each request, in their order.
        delay_secs: Before each answer.
        failures: How many of the next requests are answered 503.
        fails_each: Each so many requests are answered 503; 0: none.
        secrets: Headers with credentials, as they came.
        uploads: Parts of uploads that are not complete.
        sent_bytes: Bytes of objects that were sent.
        most_at_once: The most requests that it had at a time.
    """

    address: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    delay_secs: float = 0.0
    failures: int = 0
    fails_each: int = 0
    secrets: list[str] = field(default_factory=list)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    parts: int = 0
    sent_bytes: int = 0
    most_at_once: int = 0
    at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Serve until the block ends."""
    state = S3Server()

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server_state: S3Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def _begin(self) -> tuple[str, dict[str, list[str]], bytes] | None:
        state = self.server_state
        url = urlsplit(self.path)
        state.requests.append(f"{self.command} {url.path}")
        state.secrets.append(self.headers.get("Authorization", ""))
        body = self._body()
        with state.lock:
            state.at_once += 1
            state.most_at_once = max(state.most_at_once, state.at_once)
        time.sleep(state.delay_secs)
        if state.failures or (state.fails_each and len(state.requests) % state.fails_each == 0):
            state.failures = max(0, state.failures - 1)
            self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
            return None
        return unquote(url.path).strip("/"), parse_qs(url.query, keep_blank_values=True), body

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            plain, rest = b"", data
            while rest:
                head, _, rest = rest.partition(b"\r\n")
                size = int(head.split(b";")[0], 16)
                if not size:
                    break
                plain, rest = plain + rest[:size], rest[size + 2 :]
            data = plain
        return data

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        with self.server_state.lock:
            self.server_state.at_once -= 1
            self.server_state.sent_bytes += len(body)
        self.send_response(status)
        length = headers.pop("length", str(len(body)))
        self.send_header("Content-Length", length)
        # No connection outlives its request: no thread is left behind.
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:  # http.server's name
        """Answer the size of an object."""
        if (begun := self._begin()) is None:
            return
        data = self.server_state.objects.get(begun[0])
        if data is None:
            self._answer(404)
        else:
            self._answer(200, length=str(len(data)), ETag='"1"', Accept_Ranges="bytes")

    def do_GET(self) -> None:  # http.server's name
        """Answer a range of an object, or a listing."""
        if (begun := self._begin()) is None:
            return
        key, query, _ = begun
        if "list-type" in query:
            self._answer(200, self._listing(key, query))
            return
        data = self.server_state.objects.get(key)
        if data is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self._answer(200, data, ETag='"1"')
            return
        first = int(wanted[1])
        last = min(int(wanted[2]) if wanted[2] else len(data) - 1, len(data) - 1)
        self._answer(
            206,
            data[first : last + 1],
            ETag='"1"',
            Content_Range=f"bytes {first}-{last}/{len(data)}",
        )

    def _listing(self, bucket: str, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        rows, folders = [], set()
        for key, data in sorted(self.server_state.objects.items()):
            name = key.removeprefix(bucket + "/")
            if name == key or not name.startswith(prefix):
                continue
            rest = name[len(prefix) :]
            if "/" in rest and query.get("delimiter", [""])[0]:
                folders.add(prefix + rest.partition("/")[0] + "/")
                continue
            rows.append(
                f"<Contents><Key>{escape(name)}</Key><Size>{len(data)}</Size><ETag>1</ETag>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass></Contents>"
            )
        rows += [
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
            for one in sorted(folders)
        ]
        return (
            f"<ListBucketResult><Name>{bucket}</Name><IsTruncated>false</IsTruncated><KeyCount>{len(rows)}</KeyCount>"
            f"{''.join(rows)}</ListBucketResult>"
        ).encode()

    def do_PUT(self) -> None:  # http.server's name
        """Take an object, or a part of one."""
        if (begun := self._begin()) is None:
            return
        key, query, body = begun
        if "uploadId" in query:
            self.server_state.uploads[key][int(query["partNumber"][0])] = body
            self.server_state.parts += 1
        elif "/" in key:
            self.server_state.objects[key] = body
        self._answer(200, ETag='"1"')

    def do_POST(self) -> None:  # http.server's name
        """Begin or complete an upload in parts, or delete objects."""
        if (begun := self._begin()) is None:
            return
        key, query, body = begun
        state = self.server_state
        if "uploads" in query:
            state.uploads[key] = {}
            self._answer(
                200,
                b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
            )
        elif "uploadId" in query:
            parts = state.uploads.pop(key)
            state.objects[key] = b"".join(parts[number] for number in sorted(parts))
            self._answer(
                200,
                b"<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>",
            )
        else:
            for name in re.findall(rb"<Key>(.*?)</Key>", body):
                state.objects.pop(f"{key}/{name.decode()}", None)
            self._answer(200, b"<DeleteResult></DeleteResult>")

    def do_DELETE(self) -> None:  # http.server's name
        """Delete an object."""
        if (begun := self._begin()) is None:
            return
        self.server_state.objects.pop(begun[0], None)
        self._answer(204)
