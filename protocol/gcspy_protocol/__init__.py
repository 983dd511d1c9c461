"""The GCspy wire protocol, without sockets: SPEC.md beside this package is its law.

The door: `Connection` and `ClientInterpreter`, and the modules `messages`,
`model` and `errors`. Encoding for many clients at once is in `values`, `codec`
and `frame`.
"""

from __future__ import annotations

from gcspy_protocol.connection import VERSIONS, Connection
from gcspy_protocol.interpreter import ClientInterpreter

__all__ = ["VERSIONS", "ClientInterpreter", "Connection"]
