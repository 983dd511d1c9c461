from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.conftest import garbage_in_this_thread as garbage_in_this_thread
from tests.client.conftest import make_window as make_window
from tests.client.conftest import program as program
from tests.client.conftest import qapp_cls as qapp_cls
from tests.client.conftest import socket_directory as socket_directory
from tests.client.conftest import wait as wait
from tests.hostile.sentinel import Sentinel


@pytest.fixture
def sentinel(tmp_path: Path) -> Iterator[Sentinel]:
    with Sentinel(tmp_path / "sentinel.png") as made:
        yield made
