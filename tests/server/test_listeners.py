"""Where a session may listen, who may join it there, and what remains when it is over."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_protocol.errors import CommandError, LinkError, LocalProtocolError, Refused

from gcspy.connection.link import connect
from gcspy_server.api import ServedSession, Server
from gcspy_session.network import address as addresses
from gcspy_session.network import listeners
from tests.server.conftest import EndLog
from tests.server.target import START, Target
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]

TOKEN = "correct horse battery staple"


def test_a_unix_socket_is_for_its_user_alone(serve: Serve) -> None:
    path = serve(Target()).addresses[0].removeprefix("unix:")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_default_socket_is_in_a_directory_of_the_users_own(
    socket_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_directory))
    address = addresses.default_address(4711)
    directory = socket_directory / "gcspy"
    assert address.path == str(directory / "4711.sock")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.rmdir()


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that stands for /tmp, where no user has a runtime directory."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nonexistent")
    monkeypatch.setattr(addresses, "_SHARED", tmp_path)
    addresses._say.cache_clear()
    return tmp_path


def taken(how: str, path: Path) -> None:
    """Let another server be there first."""
    if how == "another's":
        path.mkdir(mode=0o700)
        os.chown(path, 65534, 65534)
    elif how == "link to one's own":
        (path.parent / "own").mkdir(mode=0o700)
        path.symlink_to(path.parent / "own")
    elif how == "open to others":
        path.mkdir()
        path.chmod(0o755)
    else:
        path.write_text("a file")


@pytest.mark.parametrize("how", ["another's", "link to one's own", "open to others", "a file"])
def test_a_directory_that_is_taken_is_replaced_by_one_that_cannot_be(
    how: str, shared: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if how == "another's" and os.geteuid() != 0:
        pytest.skip("only root can make another's folder")
    usual = shared / f"gcspy-{os.geteuid()}"
    taken(how, usual)
    address = addresses.default_address(4711)
    folder = Path(address.path).parent
    assert folder != usual
    assert folder.name.startswith(f"gcspy-{os.geteuid()}-")
    assert stat.S_IMODE(folder.lstat().st_mode) == 0o700
    assert addresses.default_address(4711) == address, "every process finds the same"
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"{usual} does not belong to uid {os.geteuid()} alone: using {folder}" in line


def test_what_others_put_beside_it_is_never_taken(shared: Path) -> None:
    usual = shared / f"gcspy-{os.geteuid()}"
    usual.write_text("taken")
    first = shared / f"gcspy-{os.geteuid()}-0"
    taken("link to one's own", first)
    if os.geteuid() == 0:
        taken("another's", shared / "gcspy-0-00")
    folder = Path(addresses.default_address(4711).path).parent
    assert folder.name not in (first.name, "gcspy-0-00")
    assert addresses.own_directories() == [folder]


def test_a_server_is_found_where_it_is_when_the_usual_directory_is_free_again(shared: Path) -> None:
    usual = shared / f"gcspy-{os.geteuid()}"
    usual.write_text("taken")
    there = addresses.default_address(4711)
    Path(there.path).touch()
    usual.unlink()
    assert addresses.default_address(4711) == there
    assert addresses.default_address(4712).path == str(usual / "4712.sock")


def test_a_runtime_directory_of_somebody_else_is_not_used(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make another's folder")
    theirs = shared / "theirs"
    taken("another's", theirs)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(theirs))
    assert addresses.runtime_directory() == shared / "gcspy-0"


def test_sockets_of_killed_servers_are_swept_and_no_others(shared: Path) -> None:
    folder = addresses.runtime_directory()
    old, new, served, future = (folder / f"{number}.sock" for number in (1, 2, 3, 6))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(served))
        listening.listen(1)
        for path in (old, new, future):
            with socket.socket(socket.AF_UNIX) as killed:
                killed.bind(str(path))
        (folder / "4.sock").write_text("no socket")
        for path in (old, served, folder / "4.sock"):
            os.utime(path, (0, 0))
        # The clock was set back since: the socket is not a new one.
        os.utime(future, (1 << 32, 1 << 32))
        listeners.close_all(listeners.open_all([f"unix:{folder}/5.sock"], token=None))
        assert {path.name for path in folder.iterdir()} == {"2.sock", "3.sock", "4.sock"}


def test_without_a_runtime_directory_the_socket_is_in_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nonexistent")
    assert addresses.runtime_directory() == Path(f"/tmp/gcspy-{os.geteuid()}")


def test_a_peer_of_another_user_is_refused(
    serve: Serve, join: Join, ended: EndLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests have one uid: let the server believe that it has another, that is not root's peer.
    monkeypatch.setattr(
        "gcspy_session.network.acceptor.peer_of", lambda stream: ("unix uid 4242 pid 1", 4242)
    )
    address = serve(Target()).addresses[0]
    with pytest.raises(Refused, match="uid 4242 may not connect") as refused:
        connect(address)
    assert refused.value.code == "token"
    (line,) = ended.abnormal()
    assert "uid 4242" in line


def test_the_peers_uid_is_the_kernels_word(
    serve: Serve, join: Join, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="gcspy.server")
    join(serve(Target()).addresses[0])
    assert f"unix uid {os.geteuid()} pid {os.getpid()}" in caplog.text


def test_tcp_needs_a_token(serve: Serve) -> None:
    for address in ("127.0.0.1:0", "tls:127.0.0.1:0"):
        with pytest.raises(CommandError, match="needs a token"):
            serve(Target(), address)


def test_plain_tcp_does_not_leave_the_machine(serve: Serve) -> None:
    for address in ("0.0.0.0:0", "[::]:0"):
        with pytest.raises(CommandError, match="listen at tls:"):
            serve(Target(), address, token=TOKEN)


def test_a_client_with_the_token_joins_over_tcp(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target, "tcp:127.0.0.1:0", token=TOKEN).addresses[0]
    place = parse_address(address)
    assert isinstance(place, TcpAddress)
    assert place.port > 0
    viewer = join(address, token=TOKEN)
    target.event(START)
    viewer.event()
    viewer.assert_has(target.heap)


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "ünïcode"])
def test_a_client_without_the_token_is_refused_and_the_token_is_not_logged(
    serve: Serve, ended: EndLog, caplog: pytest.LogCaptureFixture, token: str
) -> None:
    address = serve(Target(), "127.0.0.1:0", token=TOKEN).addresses[0]
    with pytest.raises(Refused) as refused:
        connect(address, token=token)
    assert refused.value.code == "token"
    assert "GCSPY_TOKEN" in refused.value.remedy
    (line,) = ended.abnormal()
    assert ("wrong token" if token else "no token") in line
    assert TOKEN[:-1] not in caplog.text


def test_tls_is_trusted_by_its_fingerprint(serve: Serve, join: Join) -> None:
    target = Target(tiles=100_000)
    join_line = serve(target, "tls:127.0.0.1:0", token=TOKEN).addresses[0]
    assert "#sha256=" in join_line
    viewer = join(join_line, token=TOKEN)
    for _ in range(3):
        target.event(START)
        viewer.event()
        viewer.assert_has(target.heap)
    wrong = join_line[:-4] + ("0000" if not join_line.endswith("0000") else "1111")
    with pytest.raises(LinkError, match="not the server of the join line"):
        connect(wrong, token=TOKEN)
    with pytest.raises(LinkError, match="fingerprint is missing"):
        connect(join_line.partition("#")[0], token=TOKEN)
    with pytest.raises(Refused):
        connect(join_line, token="no")


def test_tls_may_listen_everywhere(serve: Serve, join: Join) -> None:
    address = serve(Target(), "tls:0.0.0.0:0", token=TOKEN).addresses[0]
    join(address.replace("0.0.0.0", "127.0.0.1"), token=TOKEN)


def test_a_peer_that_does_not_speak_tls_is_ended(serve: Serve, join: Join, ended: EndLog) -> None:
    join_line = serve(Target(), "tls:127.0.0.1:0", token=TOKEN).addresses[0]
    place = parse_address(join_line)
    assert isinstance(place, TcpAddress)
    with socket.create_connection((place.host, place.port), 10) as sock:
        sock.sendall(b"GCspy\r\n\x1a\x01\x00\x01\x00 and so on")
        while sock.recv(4096):
            pass
    (line,) = ended.abnormal()
    assert "tls 127.0.0.1" in line
    join(join_line, token=TOKEN)


def test_a_taken_port_is_refused_with_a_remedy(serve: Serve) -> None:
    taken = serve(Target(), "127.0.0.1:0", token=TOKEN).addresses[0]
    with pytest.raises(LinkError, match="another port, or 0"):
        serve(Target(), taken, token=TOKEN)


def test_a_taken_socket_is_refused_and_a_stale_one_replaced(
    serve: Serve, join: Join, socket_directory: Path
) -> None:
    address = f"unix:{socket_directory}/taken.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(address.removeprefix("unix:"))
    first = serve(Target(), address)
    with pytest.raises(LinkError, match="a server already listens there"):
        serve(Target(), address)
    join(first.addresses[0])


def test_a_file_that_is_no_socket_is_left_alone(serve: Serve, socket_directory: Path) -> None:
    path = socket_directory / "precious"
    path.write_text("data")
    with pytest.raises(LinkError, match="not a socket"):
        serve(Target(), f"unix:{path}")
    assert path.read_text() == "data"
    path.unlink()


def test_when_one_address_fails_none_stays_open(serve: Serve, socket_directory: Path) -> None:
    good = f"unix:{socket_directory}/good.sock"
    with pytest.raises(CommandError):
        serve(Target(), good, "127.0.0.1:0")
    assert list(socket_directory.iterdir()) == []
    with pytest.raises(LinkError, match="cannot listen"):
        serve(Target(), "unix:/nonexistent/directory/x.sock")
    with pytest.raises(LinkError, match="cannot listen"):
        serve(Target(), "tls:192.0.2.1:0", token=TOKEN)


def test_a_server_can_listen_in_two_ways_at_once(
    serve: Serve, join: Join, socket_directory: Path
) -> None:
    target = Target()
    listening = serve(target, f"unix:{socket_directory}/x.sock", "127.0.0.1:0", token=TOKEN)
    local, remote = join(listening.addresses[0]), join(listening.addresses[1], token=TOKEN)
    target.event(START)
    for viewer in (local, remote):
        viewer.event()
    remote.assert_equals(local)


def test_a_port_is_free_again_afterwards(serve: Serve) -> None:
    with serve(Target(), "127.0.0.1:0", token=TOKEN) as listening:
        place = parse_address(listening.addresses[0])
        assert isinstance(place, TcpAddress)
    with pytest.raises(LinkError, match="cannot connect"):
        connect(place)
    with serve(Target(), str(place), token=TOKEN):
        connect(place, token=TOKEN).close()


def test_a_socket_that_somebody_else_put_in_our_place_is_not_removed(
    serve: Serve, socket_directory: Path
) -> None:
    path = socket_directory / "ours.sock"
    listening = serve(Target(), f"unix:{path}")
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        listening.close()
        assert path.is_socket()
    path.unlink()


def test_serving_twice_at_once_or_nowhere_is_refused(serve: Serve) -> None:
    target = Target()
    serve(target)
    with pytest.raises(LocalProtocolError, match="already listening"):
        serve(target)
    with pytest.raises(LocalProtocolError, match="at least one address"):
        Server("x", events=["e"]).serve()


def test_an_ended_session_says_so_to_who_comes(serve: Serve, join: Join) -> None:
    target = Target()
    viewer = join(serve(target).addresses[0])
    target.server.close()
    viewer.next(m.Goodbye)
    target.server.close()
