"""Who may come in: the judgement of a greeting.

Knows tokens and who is at the other end; knows no session.
"""

from __future__ import annotations

import hmac

from gcspy_protocol.messages import Error, ErrorCode, Hello

from gcspy_server.session.transport import Transport

__all__ = ["refusal_of"]


def refusal_of(
    transport: Transport,
    hello: Hello,
    *,
    token: str | None,
    closing: bool,
    clients: int,
    most_clients: int,
) -> Error | None:
    """Why a client may not come in; None: it may.

    Args:
        transport: The way it came.
        hello: How it greeted.
        token: What those must know whose way here does not prove who they are; None: nobody may come that way.
        closing: Whether the session is ending.
        clients: How many are there already.
        most_clients: How many there may be.
    """
    if transport.refusal:
        return Error(
            code=ErrorCode.TOKEN,
            message=transport.refusal,
            remedy="connect as the same user",
            fatal=True,
        )
    if not transport.trusted and not (
        token is not None and hmac.compare_digest(hello.token.encode(), token.encode())
    ):
        what = "wrong token" if hello.token else "no token"
        remedy = "give the server's token by a token file, GCSPY_TOKEN or at the prompt"
        return Error(code=ErrorCode.TOKEN, message=what, remedy=remedy, fatal=True)
    if closing:
        return Error(code=ErrorCode.BUSY, message="the session is ending", fatal=True)
    if clients >= most_clients:
        message = f"{clients} clients are connected, which is the most allowed"
        return Error(
            code=ErrorCode.BUSY, message=message, remedy="try again when one has left", fatal=True
        )
    return None
