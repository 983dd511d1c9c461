"""Credentials of a storage come from the places where its users have them, and are in no output, log or error."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gcspy.cli import main
from tests.matrix import matrix
from tests.s3_server import S3Server, s3_server

pytest.importorskip("s3fs", reason="needs the extra storage")

DEMO = Path(__file__).parents[2] / "replay/samples/demo-cpython-3.11.gcspy"
KEY, CANARY, TOKEN = "AKIACANARY", "canary-wJalrXUtnFEMI", "canary-session-token"
ROLE = {
    "Code": "Success",
    "Type": "AWS-HMAC",
    "AccessKeyId": KEY,
    "SecretAccessKey": CANARY,
    "Token": TOKEN,
    "Expiration": "2099-01-01T00:00:00Z",
    "LastUpdated": "2026-01-01T00:00:00Z",
}


@contextmanager
def role_server() -> Iterator[str]:
    """A machine's, or a container's, server of credentials."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self._answer(b"a-token")

        def do_GET(self) -> None:
            is_list = self.path.endswith("security-credentials/")
            self._answer(b"role" if is_list else json.dumps(ROLE).encode())

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def credentials_file(home: Path, profile: str) -> None:
    (home / ".aws").mkdir()
    (home / ".aws/credentials").write_text(
        f"[{profile}]\naws_access_key_id = {KEY}\naws_secret_access_key = {CANARY}\n"
    )


def variables(home: Path, role: str) -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": CANARY, "AWS_SESSION_TOKEN": TOKEN}


def default_profile(home: Path, role: str) -> dict[str, str]:
    credentials_file(home, "default")
    return {}


def named_profile(home: Path, role: str) -> dict[str, str]:
    credentials_file(home, "night")
    return {"AWS_PROFILE": "night"}


def container(home: Path, role: str) -> dict[str, str]:
    return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{role}/credentials"}


def machine(home: Path, role: str) -> dict[str, str]:
    return {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{role}/"}


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        running.objects["b/demo.gcspy"] = DEMO.read_bytes()
        yield running


PLACES = [variables, default_profile, named_profile, container, machine]


@pytest.mark.parametrize("given", matrix(PLACES, usual=[named_profile, machine]))
def test_credentials_are_found_where_users_have_them_and_are_told_nobody(
    given: Callable[[Path, str], dict[str, str]],
    server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.address)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    caplog.set_level(logging.DEBUG, logger="gcspy")
    with role_server() as role:
        for name, value in given(tmp_path, role).items():
            monkeypatch.setenv(name, value)
        assert main(["info", "s3://b/demo.gcspy", "--json"]) == 0
        assert main(["info", "s3://b/none.gcspy"]) != 0
    s3fs.S3FileSystem.clear_instance_cache()
    assert server.secrets
    assert all(KEY in one for one in server.secrets), "each request is signed"
    out, err = capfd.readouterr()
    for secret in (CANARY, TOKEN):
        assert secret not in out + err + caplog.text
        assert not any(secret in one for one in server.secrets)
