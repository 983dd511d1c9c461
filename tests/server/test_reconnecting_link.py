"""A link that lasts: over lost connections, for the given time, and no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import LinkError, Refused
from gcspy_protocol.messages import ErrorCode

from gcspy.connection import reconnecting_link
from gcspy.connection.link import Link, connect
from gcspy.connection.reconnecting_link import ReconnectingLink
from gcspy_server.api import ServedSession
from tests.server.relay import HangingUp, Relay, welcoming
from tests.server.target import START, Target
from tests.server.test_link import FakeServer

Serve = Callable[..., ServedSession]


@pytest.fixture
def relay(socket_directory: Path) -> Iterator[Relay]:
    found = Relay(socket_directory / "relay", "nowhere")
    yield found
    found.close()


def next_of(link: ReconnectingLink, kind: type[m.Message]) -> m.Message:
    return next(message for message in link if isinstance(message, kind))


def dial_in_turn(*addresses: str) -> Callable[[], Link]:
    turn = iter(addresses)
    return lambda: connect(next(turn))


def test_it_goes_on_over_a_lost_connection(serve: Serve, relay: Relay) -> None:
    target = Target()
    relay.lead_to(serve(target).addresses[0])
    said: list[str] = []
    with ReconnectingLink(lambda: connect(relay.address), within_secs=10, say=said.append) as link:
        first = next_of(link, m.Welcome)
        target.event(START)
        event = next_of(link, m.Event)
        relay.cut()
        again = next_of(link, m.Welcome)
        assert isinstance(first, m.Welcome)
        assert isinstance(again, m.Welcome)
        assert again.session == first.session
        assert again.client_id != first.client_id
        assert link.welcome == again
        repeated = next_of(link, m.Event)
        assert isinstance(event, m.Event)
        assert isinstance(repeated, m.Event)
        assert (repeated.occurrence, repeated.cached) == (event.occurrence, True)
        assert link.lost == 1
        assert "trying to reconnect for 10 s" in said[0]
        assert said[1].startswith("reconnected to unix:")


def test_without_patience_it_is_a_link_like_any(serve: Serve, relay: Relay) -> None:
    relay.lead_to(serve(Target()).addresses[0])
    with ReconnectingLink(lambda: connect(relay.address)) as link:
        next_of(link, m.Counters)
        relay.cut()
        with pytest.raises(LinkError):
            next_of(link, m.Event)


def test_patience_ends(serve: Serve, socket_directory: Path) -> None:
    relay = Relay(socket_directory / "mortal", serve(Target()).addresses[0])
    with ReconnectingLink(lambda: connect(relay.address), within_secs=0.05) as link:
        next_of(link, m.Counters)
        relay.close()
        assert link.receive(0) is None, "what waits no longer gets no answer yet"
        assert not link.closed
        link.send(m.Pong(number=1))  # goes nowhere, and harms no one
        with pytest.raises(
            LinkError, match=r"not reconnected within 0.05 s: cannot connect to unix:"
        ):
            next_of(link, m.Event)


def test_a_goodbye_is_no_loss(serve: Serve) -> None:
    listening = serve(Target())
    with ReconnectingLink(lambda: connect(listening.addresses[0]), within_secs=10) as link:
        listening.close()
        assert isinstance(list(link)[-1], m.Goodbye)
        assert link.closed
        assert link.lost == 0


def test_a_server_that_is_not_there_at_first_is_not_waited_for(socket_directory: Path) -> None:
    with pytest.raises(LinkError, match="cannot connect"):
        ReconnectingLink(lambda: connect(f"unix:{socket_directory}/nobody"), within_secs=60)


def test_who_welcomes_and_hangs_up_again_and_again_is_given_up(
    socket_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is dialled less and less often, however often it welcomes us, and no longer than patience lasts."""
    monkeypatch.setattr(reconnecting_link, "_LASTING_SECS", 60.0)  # however slow this machine is
    said: list[str] = []
    with (
        HangingUp(socket_directory / "stranger") as stranger,
        ReconnectingLink(lambda: connect(stranger.address), within_secs=1, say=said.append) as link,
        pytest.raises(LinkError, match=r"not reconnected within 1 s: .* without a goodbye"),
    ):
        next_of(link, m.Event)
    # Once more at once, and then after 0.1, 0.2 and 0.4 s; 0.8 s more would be too long.
    assert 2 < stranger.welcomed <= 5
    assert link.lost == stranger.welcomed
    assert sum("trying to reconnect for 1 s" in line for line in said) == 1
    assert sum(line.endswith("; trying again") for line in said) == link.lost - 2


@pytest.mark.parametrize("code", [ErrorCode.TOO_SLOW, ErrorCode.PROTOCOL])
def test_who_was_too_slow_comes_back_and_who_was_wrong_does_not(
    serve: Serve, socket_directory: Path, code: ErrorCode
) -> None:
    server, says = welcoming()
    says += server.send(m.Error(code=code, message="out", fatal=True))
    real = serve(Target()).addresses[0]
    with (
        FakeServer(socket_directory / "fake", says) as fake,
        ReconnectingLink(dial_in_turn(fake.address, real), within_secs=10) as link,
    ):
        if code is ErrorCode.TOO_SLOW:
            next_of(link, m.Counters)
            assert link.lost == 1
        else:
            with pytest.raises(Refused, match="ended the connection: out"):
                next_of(link, m.Event)
            assert link.lost == 0


def test_who_is_refused_does_not_ask_again(serve: Serve, relay: Relay) -> None:
    relay.lead_to(serve(Target()).addresses[0])
    dials = iter(range(10))

    def dial() -> Link:
        if next(dials):
            raise Refused("no token", code="token")
        return connect(relay.address)

    with ReconnectingLink(dial, within_secs=10) as link:
        next_of(link, m.Counters)
        relay.cut()
        with pytest.raises(Refused, match="no token"):
            next_of(link, m.Event)
    assert next(dials) == 2
