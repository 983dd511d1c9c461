from __future__ import annotations

import pytest
from gcspy_protocol.address import TcpAddress, UnixAddress, parse_address
from gcspy_protocol.errors import CommandError, GCspyError
from hypothesis import given
from hypothesis import strategies as st

PRINT = "0123456789abcdef" * 4

hosts = st.sampled_from(["localhost", "127.0.0.1", "::1", "fe80::1", "host.example"])
tcp = st.builds(TcpAddress, hosts, st.integers(0, 65535))
tls = st.builds(
    TcpAddress, hosts, st.integers(0, 65535), st.just(True), st.sampled_from([None, PRINT])
)
paths = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=25).map(
    lambda text: "/" + text
)


@given(st.one_of(tcp, tls, st.builds(UnixAddress, paths)))
def test_an_address_that_is_written_is_read_again(address: TcpAddress | UnixAddress) -> None:
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/run/x.sock", UnixAddress("/run/x.sock")),
        ("unix:/run/x.sock", UnixAddress("/run/x.sock")),
        ("tcp:localhost:1", TcpAddress("localhost", 1)),
        ("tls:[::1]:1", TcpAddress("::1", 1, True)),
        (f"tls:h:1#sha256={PRINT.upper()}", TcpAddress("h", 1, True, PRINT)),
    ],
)
def test_the_forms_of_an_address(text: str, expected: object) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is invalid"),
        ("localhost", "is invalid"),
        ("localhost:", "is invalid"),
        (":4711", "is invalid"),
        ("host:port", "is invalid"),
        ("host:65536", "is invalid"),
        ("host:²", "is invalid"),
        ("::1:4711", r"\[::1\]:4711"),
        ("unix:relative", "absolute"),
        ("unix:/" + "x" * 107, "108 bytes"),
        ("unix:/a\0b", "absolute"),
        (f"host:1#sha256={PRINT}", "only tls"),
        ("tls:host:1#sha256=abc", "got 3"),
        ("tls:host:1#md5=" + PRINT, "sha256="),
    ],
)
def test_what_is_no_address_is_refused_with_what_would_be(text: str, match: str) -> None:
    with pytest.raises(CommandError, match=match):
        parse_address(text)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        parse_address(text)
    except GCspyError:
        return


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("host", False),
    ],
)
def test_loopback_is_this_machine_alone(host: str, loopback: bool) -> None:
    assert TcpAddress(host, 1).is_loopback is loopback
