"""The window and the link against real servers, over real sockets."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.address import parse_address
from gcspy_protocol.connection import preamble
from gcspy_protocol.messages import TakeControl
from gcspy_protocol.model import ControlState
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import LOW
from gcspy_client.model.shell.link_status import LinkPhase
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.program import TILES, Program
from tests.client.watching import Wait
from tests.matrix import matrix
from tests.protocol import exchange
from tests.server.relay import HangingUp, Relay
from tests.server.test_secrets import (
    Answer,
    Eavesdropper,
    asking,
    eavesdropper,
    echoing,
    knowing_another,
    of_version_1,
    replaying,
    welcoming,
)

TOKEN = "correct horse battery staple"
SECRET = exchange.TOKEN
"""Of which an `Eavesdropper` looks that it does not hear it."""


def state_of(window: MainWindow) -> ControlState:
    return window.session.interpreter.state


def seen(window: MainWindow) -> int:
    return window.session.events_seen


def has_seen(window: MainWindow, events: int) -> bool:
    return seen(window) >= events


def controls(window: MainWindow) -> bool:
    return window.session.interpreter.is_controller()


def phase(window: MainWindow) -> LinkPhase:
    return window.link.status.phase


@pytest.fixture
def address(program: Program, socket_directory: Path) -> str:
    return program.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]


def test_pixels_are_those_of_the_values_in_the_program(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(address)
    wait(lambda: phase(window) is LinkPhase.LIVE)
    for events in (1, 2, 3):
        program.let_happen()
        wait(partial(has_seen, window, events))
        canvas = window.spaces.panels[1].canvas
        image = canvas.grab().toImage()
        for tile in (0, 57, TILES - 1):
            wanted = int(canvas.picture.palette.lut[LOW + int(program.values[tile]) * 249 // 255])
            assert image.pixel(canvas.centre_of(tile)) & 0xFFFFFFFF == wanted


def test_names_of_tiles_are_fetched_and_shown(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(address)
    wait(lambda: phase(window) is LinkPhase.LIVE)
    program.let_happen()
    wait(
        lambda: seen(window) == 1 and window.session.interpreter.spaces[2].names.name(1) == "middle"
    )


def test_pause_takes_effect_after_the_next_event_then_step_then_resume(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(address)
    wait(lambda: controls(window))
    program.let_happen()
    wait(lambda: seen(window) == 1)
    window.settle()
    window.session_part.footer.pause.click()
    wait(lambda: state_of(window) is ControlState.PAUSING)
    window.settle()
    assert window.session_part.footer.pause.text() == "Resume program"
    assert not window.session_part.footer.step.isEnabled()
    program.let_happen(3)
    wait(lambda: state_of(window) is ControlState.PAUSED)
    assert seen(window) == 2
    window.settle()
    assert window.session_part.footer.step.isEnabled()
    window.session_part.footer.step.click()
    wait(lambda: seen(window) == 3 and state_of(window) is ControlState.PAUSED)
    window.settle()
    window.session_part.footer.pause.click()
    wait(lambda: seen(window) == 4 and state_of(window) is ControlState.RUNNING)


def test_the_second_window_is_a_viewer_until_control_is_free(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    first = make_window(address)
    wait(lambda: controls(first))
    second = make_window(address)
    program.let_happen()
    wait(lambda: seen(first) >= 1 and seen(second) >= 1)
    second.settle()
    assert not second.session.interpreter.is_controller()
    assert not second.session_part.footer.pause.isEnabled()
    first.link.close()
    wait(lambda: second.session.interpreter.clients.controller is None)
    second.link.send(TakeControl())
    wait(lambda: controls(second))
    second.settle()
    assert second.session_part.footer.pause.isEnabled()


def test_closing_the_window_while_it_holds_the_program_lets_it_go_on(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(address)
    wait(lambda: controls(window))
    window.session_part.footer.pause.setEnabled(True)
    window.session_part.footer.pause.click()
    wait(lambda: state_of(window) is ControlState.PAUSING)
    program.let_happen()
    wait(lambda: state_of(window) is ControlState.PAUSED)
    window.close()
    program.let_happen(2)
    wait(lambda: program.server.counts()[0] == 3)


def test_the_end_of_the_session_is_told_and_not_retried(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(address)
    wait(lambda: phase(window) is LinkPhase.LIVE)
    program.let_happen()
    wait(lambda: seen(window) == 1)
    program.server.close()
    wait(lambda: phase(window) is LinkPhase.ENDED)
    assert window.session_part.banner.isVisible()
    assert window.link.status.retry_secs is None
    assert window.session_part.footer.leave.text() == "Reconnect"


def test_the_end_of_the_target_is_told_while_the_server_stays(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(address)
    wait(lambda: phase(window) is LinkPhase.LIVE)
    program.let_happen()
    wait(lambda: seen(window) == 1)
    program.server.end("process 1 exited")
    wait(lambda: state_of(window) is ControlState.ENDED)
    window.settle()
    assert "process 1 exited" in window.session_part.banner.text.text()


def test_disconnect_and_reconnect_keep_what_the_user_chose(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(address)
    wait(lambda: phase(window) is LinkPhase.LIVE)
    program.let_happen()
    wait(lambda: seen(window) == 1)
    window.selection.select(2, 1)
    window.session_part.footer.leave.click()
    assert phase(window) is LinkPhase.IDLE
    assert "Disconnected" in window.session_part.banner.text.text()
    assert window.spaces.panels[1].isVisible()
    window.session_part.footer.leave.click()
    wait(lambda: phase(window) is LinkPhase.LIVE)
    program.let_happen()
    wait(lambda: window.session.interpreter.last_event is not None)
    window.settle()
    assert window.session.active == 2
    assert window.session.selected(2) == 1
    assert not window.session_part.banner.isVisible()
    picture = window.spaces.panels[1].canvas.picture
    assert (
        picture.space is window.session.interpreter.spaces[1]
    )  # not that of the connection before


@contextmanager
def _served(address: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.client.served_program", address],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_killed_server_is_found_again_when_it_is_back(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    where = f"unix:{socket_directory}/a.sock"
    with _served(where) as process:
        window = make_window(where)
        wait(lambda: seen(window) > 3)
        codes = window.spaces.panels[1].canvas.picture.codes.copy()
        process.kill()
        wait(lambda: phase(window) is LinkPhase.LOST)
        assert "Connection lost" in window.session_part.banner.text.text()
        assert len(codes) == len(window.spaces.panels[1].canvas.picture.codes)
    with _served(where):
        wait(lambda: phase(window) is LinkPhase.LIVE and seen(window) > 0)
        window.settle()
        assert "Another session answers" in window.session_part.banner.text.text()
        window.session_part._announcer._end()  # what its timer does after eight seconds
        assert not window.session_part.banner.isVisible()


def test_closing_in_the_middle_of_a_busy_session_leaves_nothing(
    socket_directory: Path, make_window: MakeWindow, wait: Wait, qtbot: QtBot
) -> None:
    where = f"unix:{socket_directory}/a.sock"
    with _served(where):
        for _ in range(5):
            window = make_window(where)
            wait(partial(has_seen, window, 1))
            window.close()
            shown = seen(window)
            qtbot.wait(20)  # nothing may come any more: there is nothing to wait for
            assert seen(window) == shown


def test_nobody_at_the_socket_is_said_with_a_remedy(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(f"unix:{socket_directory}/none.sock")
    wait(lambda: phase(window) is LinkPhase.FAILED)
    assert "no socket" in window.session_part.page.text.text()
    assert window.session_part.page.again.isVisible()


def test_nobody_at_the_port_is_said_with_a_remedy(make_window: MakeWindow, wait: Wait) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refuses
        window = make_window(f"127.0.0.1:{taken.getsockname()[1]}", token=TOKEN)
        wait(lambda: phase(window) is LinkPhase.FAILED)
    assert "No server listens there" in window.session_part.page.text.text()
    assert "gcspy attach" in window.session_part.page.text.text()


def test_a_wrong_token_is_refused_with_the_remedy(
    program: Program, make_window: MakeWindow, wait: Wait
) -> None:
    where = program.server.serve("tcp:127.0.0.1:0", token=TOKEN).addresses[0]
    window = make_window(where, token="wrong")
    wait(lambda: phase(window) is LinkPhase.FAILED)
    assert "token" in window.session_part.page.text.text()
    assert TOKEN not in window.session_part.page.text.text()
    window.link.open(parse_address(where), token=TOKEN)
    wait(lambda: phase(window) is LinkPhase.LIVE)


def test_tls_is_trusted_by_its_pinned_fingerprint_only(
    program: Program, make_window: MakeWindow, wait: Wait
) -> None:
    where = program.server.serve("tls:127.0.0.1:0", token=TOKEN).addresses[0]
    place, _, pin = where.partition("#sha256=")
    wrong = ("0" if pin[0] != "0" else "1") + pin[1:]
    window = make_window(f"{place}#sha256={wrong}", token=TOKEN)
    wait(lambda: phase(window) is LinkPhase.FAILED)
    assert "not the pinned one" in window.session_part.page.text.text()
    window = make_window(place, token=TOKEN)
    wait(lambda: phase(window) is LinkPhase.FAILED)
    assert "join line" in window.session_part.page.text.text()
    window = make_window(where, token=TOKEN)
    wait(lambda: phase(window) is LinkPhase.LIVE)
    program.let_happen()
    wait(lambda: seen(window) == 1)


@pytest.mark.parametrize(
    ("answer", "said"),
    matrix(
        [
            (welcoming, "cannot prove that it knows the token"),
            (replaying, "cannot prove that it knows the token"),
            (of_version_1, "version 1 would send the token in the clear"),
            (echoing, "may not send HELLO"),
            (asking, "has not proved that it knows the token: it reports: no token"),
        ],
        usual=[
            (replaying, "cannot prove that it knows the token"),
            (echoing, "may not send HELLO"),
            (asking, "has not proved that it knows the token: it reports: no token"),
        ],
    ),
)
def test_who_listens_at_the_address_learns_nothing_of_the_token(
    answer: Answer, said: str, make_window: MakeWindow, wait: Wait
) -> None:
    with eavesdropper(answer) as ear:
        window = make_window(f"127.0.0.1:{ear.port}", token=SECRET)
        wait(lambda: phase(window) is LinkPhase.FAILED)
        text = window.session_part.page.text.text()
        assert said.lower() in text.lower()
        assert SECRET not in text
        assert "gcspy-evil" not in text
        assert f"127.0.0.1:{ear.port}" in text
    ear.learned_nothing()


def test_a_unix_socket_gets_no_token(
    socket_directory: Path, program: Program, make_window: MakeWindow, wait: Wait
) -> None:
    path = socket_directory / "ear"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    with Eavesdropper(listening, of_version_1) as ear:
        window = make_window(f"unix:{path}", token=SECRET)
        wait(lambda: phase(window) is LinkPhase.LIVE)
        window.link.close()
    ear.learned_nothing()


def test_a_window_proves_anew_each_time_and_goes_on_where_it_was(
    program: Program, make_window: MakeWindow, wait: Wait
) -> None:
    relay = Relay(None, program.server.serve("127.0.0.1:0", token=TOKEN).addresses[0])
    try:
        window = make_window(relay.address, token=TOKEN)
        wait(lambda: phase(window) is LinkPhase.LIVE)
        for _ in range(3):
            relay.cut()
            wait(lambda: phase(window) is LinkPhase.LOST)
            wait(lambda: phase(window) is LinkPhase.LIVE)
        program.let_happen()
        wait(lambda: seen(window) >= 1)
        assert window.link.version == 2
    finally:
        relay.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    matrix(
        [
            (welcoming, "cannot prove that it knows the token"),
            (replaying, "cannot prove that it knows the token"),
            (knowing_another, "cannot prove that it knows the token"),
            (of_version_1, "version 1 would send the token in the clear"),
            (asking, "has not proved that it knows the token: it reports: no token"),
        ],
        usual=[
            (knowing_another, "cannot prove that it knows the token"),
            (of_version_1, "version 1 would send the token in the clear"),
        ],
    ),
)
def test_a_window_that_comes_back_to_a_stranger_says_so_and_tells_it_nothing(
    answer: Answer, said: str, program: Program, make_window: MakeWindow, wait: Wait
) -> None:
    ours = program.server.serve("127.0.0.1:0", token=SECRET).addresses[0]
    relay = Relay(None, ours)
    try:
        with eavesdropper(answer) as ear:
            window = make_window(relay.address, token=SECRET)
            wait(lambda: phase(window) is LinkPhase.LIVE)
            program.let_happen()
            wait(lambda: seen(window) == 1)
            relay.lead_to(f"127.0.0.1:{ear.port}")
            relay.cut()
            wait(lambda: phase(window) is LinkPhase.FAILED)
            window.settle()
            text = window.session_part.banner.text.text()
            assert said.lower() in text.lower()
            assert SECRET not in text
            assert window.spaces.panels, "what was received last stays"
            assert window.link.status.retry_secs is None
            relay.cut()  # or who listens would wait for more
        ear.learned_nothing()
        relay.lead_to(ours)
        window.link.reconnect()
        wait(lambda: phase(window) is LinkPhase.LIVE)
    finally:
        relay.close()


@pytest.mark.parametrize("way", ["plain", "tls"])
def test_a_window_whose_server_is_started_anew_with_another_token_says_so(
    way: str, program: Program, make_window: MakeWindow, wait: Wait
) -> None:
    first, second = Program(), program
    scheme = "tls:" if way == "tls" else ""
    where = first.server.serve(f"{scheme}127.0.0.1:0", token=SECRET).addresses[0]
    place, _, pin = where.partition("#")
    relay = Relay(None, place.removeprefix("tls:"))
    try:
        window = make_window(f"{scheme}{relay.address}{pin and '#' + pin}", token=SECRET)
        wait(lambda: phase(window) is LinkPhase.LIVE)
        first.let_happen()
        wait(lambda: seen(window) == 1)
        where = second.server.serve(f"{scheme}127.0.0.1:0", token="another one").addresses[0]
        relay.lead_to(where.partition("#")[0].removeprefix("tls:"))
        relay.cut()
        wait(lambda: phase(window) is LinkPhase.FAILED)
        window.settle()
        said = window.session_part.banner.text.text()
        wanted = "not the pinned one" if way == "tls" else "the token"
        assert wanted in said
        assert SECRET not in said
    finally:
        relay.close()
        first.server.close()
        first.stop()


def test_a_window_says_when_another_session_answers_at_its_socket(
    socket_directory: Path, program: Program, make_window: MakeWindow, wait: Wait
) -> None:
    first = Program()
    relay = Relay(
        socket_directory / "r", first.server.serve(f"unix:{socket_directory}/a").addresses[0]
    )
    try:
        window = make_window(relay.address)
        wait(lambda: phase(window) is LinkPhase.LIVE)
        first.let_happen()
        wait(lambda: seen(window) == 1)
        relay.cut()
        wait(lambda: phase(window) is LinkPhase.LOST)
        wait(lambda: phase(window) is LinkPhase.LIVE)
        window.settle()
        assert "Another session" not in window.session_part.banner.text.text()
        relay.lead_to(program.server.serve(f"unix:{socket_directory}/b").addresses[0])
        relay.cut()
        wait(lambda: "Another session answers" in window.session_part.banner.text.text())
        assert "It was: Test program, pid 1." in window.session_part.banner.text.text()
    finally:
        relay.close()
        first.server.close()
        first.stop()


def test_a_window_refuses_plain_tcp_to_another_machine(make_window: MakeWindow, wait: Wait) -> None:
    window = make_window("192.0.2.1:7777", token=SECRET)
    assert phase(window) is LinkPhase.FAILED
    assert "would carry the heap in the clear" in window.session_part.page.text.text()
    assert "ssh -N -L 7777:127.0.0.1:7777 192.0.2.1" in window.link.status.remedy


@contextmanager
def _answering(answer: bytes) -> Iterator[str]:
    """A server that answers every client with these bytes and hangs up when they do."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            with peer:
                peer.sendall(answer)
                while peer.recv(4096):
                    pass

        thread = threading.Thread(target=serve, name="answering")
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(60)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (preamble((9, 12)), "protocol versions 9 to 12"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a GCspy peer"),
        (preamble() + b"\xff" * 28, "over the limit"),
    ],
)
def test_a_server_of_another_kind_is_told_from_ours(
    answer: bytes, said: str, make_window: MakeWindow, wait: Wait
) -> None:
    with _answering(answer) as where:
        window = make_window(where, token=TOKEN)
        wait(lambda: phase(window) is LinkPhase.FAILED)
        assert said.lower() in window.session_part.page.text.text().lower()
        window.close()


def test_a_server_that_never_greets_is_given_up(make_window: MakeWindow, wait: Wait) -> None:
    with _answering(b"") as where:
        window = make_window(where, token=TOKEN)
        wait(lambda: phase(window) is LinkPhase.GREETING)
        window.link._give_up_waiting()  # what its timer does after ten seconds
        assert phase(window) is LinkPhase.FAILED
        assert "sent no greeting" in window.session_part.page.text.text()
        window.close()


def test_a_server_that_welcomes_and_hangs_up_is_dialled_less_and_less_often(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    with HangingUp(socket_directory / "stranger") as stranger:
        window = make_window(stranger.address)
        wait(lambda: (window.link.status.retry_secs or 0) >= 1.0)
        assert stranger.welcomed >= 2
        window.close()


def test_events_that_come_together_are_all_applied(
    program: Program, address: str, make_window: MakeWindow, wait: Wait
) -> None:
    window = make_window(address)
    wait(lambda: phase(window) is LinkPhase.LIVE)
    program.let_happen(12)
    wait(lambda: seen(window) + window.session.interpreter.missed_total >= 12)
    assert np.array_equal(
        next(iter(window.session.interpreter.spaces[1].streams.values())).values, program.values
    )
