"""Cost of monitoring, from the server's messages: without such a message nothing is shown."""

from __future__ import annotations

from gcspy_protocol.interpreter import ClientInterpreter

from gcspy_client.model.panels.cost import level_rows, mode_of, mode_rows


def test_a_session_without_settings_has_no_rows() -> None:
    session = ClientInterpreter()
    assert mode_rows(session) == []
    assert level_rows(session) == []
    assert mode_of(session) is None
