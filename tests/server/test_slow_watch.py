"""A driver that does not return is reported from another thread; one that does is not."""

from __future__ import annotations

import threading

from gcspy_server.hosting.slow_watch import told_when_slow


def test_what_takes_longer_is_told_once_while_it_does() -> None:
    said: list[str] = []
    heard = threading.Event()

    def tell(text: str) -> None:
        said.append(text)
        heard.set()

    with told_when_slow("driver x: attach", tell, secs=0.01):
        assert heard.wait(60)
    assert said == ["driver x: attach takes longer than 0.01 s"]


def test_what_returns_in_time_is_not_waited_for_nor_told_of() -> None:
    said: list[str] = []
    with told_when_slow("driver x: attach", said.append, secs=10):
        pass
    assert said == []
