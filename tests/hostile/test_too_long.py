"""A text of a million characters, in whichever field: it is refused in words, before anything is made of it."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.model import Role

from tests.hostile.corpus import MANY
from tests.hostile.fields import TextField, poisoned
from tests.hostile.session import packed
from tests.hostile.test_window import FIELDS, session
from tests.protocol.sameness import same

LONG = "".join(Random(1).choices("abcdefghijklmnopqrstuvw    ", k=MANY))


def _long(wanted: TextField, field: TextField) -> str | None:
    return LONG if field == wanted else None


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_a_text_of_a_million_characters_is_refused(field: TextField) -> None:
    told = session()
    changed = list(poisoned(tuple(told), partial(_long, field)))
    place = next(i for i, one in enumerate(changed) if not same(one, told[i]))
    first = [] if isinstance(changed[place], m.Welcome) else [told[0]]
    event = next(one for one in told if isinstance(one, m.Event))
    more = [event] if isinstance(changed[place], m.SpaceInfo | m.NewNames) else []
    server, client = Connection(Role.SERVER), Connection(Role.CLIENT)
    client.send(m.Hello(client="test"))
    client.receive_data(server.preamble() + packed(server, [*first, changed[place], *more]))
    with pytest.raises(RemoteProtocolError) as refused:
        list(client.messages())
    assert len(str(refused.value)) < 500
