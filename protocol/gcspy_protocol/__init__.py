"""The GCspy wire protocol, without sockets; SPEC.md beside this package specifies it.

The public names are `Connection` and `ClientInterpreter`, and the modules `messages`, `model` and
`errors`. Encoding for many clients at once is in `streams.values`, `codec` and `frames`. The names
are imported lazily: code that needs only the errors, such as a command line that prints its help,
does not load numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcspy_protocol.connection import VERSIONS, Connection
    from gcspy_protocol.interpreter import ClientInterpreter

__all__ = ["VERSIONS", "ClientInterpreter", "Connection"]


def __getattr__(name: str) -> object:
    if name in ("VERSIONS", "Connection"):
        from gcspy_protocol import connection

        return getattr(connection, name)
    if name == "ClientInterpreter":
        from gcspy_protocol.interpreter import ClientInterpreter

        return ClientInterpreter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
