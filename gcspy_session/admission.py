"""Who may come in: the judgement of a greeting.

Knows tokens and who is at the other end; knows no session.
"""

from __future__ import annotations

import hmac

from gcspy_protocol.handshake.credentials import Channel
from gcspy_protocol.messages import Error, ErrorCode, Hello

from gcspy_session.network.transport import Transport

__all__ = ["has_to_prove", "refusal_of"]

_REMEDY = "give the server's token in a token file, in GCSPY_TOKEN or at the prompt"


def has_to_prove(transport: Transport, hello: Hello, token: str) -> bool:
    """Whether a client that offers to prove that it knows the token has to.

    Args:
        transport: The way it came.
        hello: How it greeted.
        token: The session's; empty: there is none.
    """
    offers = bool(hello.nonce) and not hello.token
    return offers and bool(token) and not (transport.refusal or transport.trusted)


def refusal_of(
    transport: Transport,
    hello: Hello,
    *,
    token: str | None,
    proven: bool,
    closing: bool,
    clients: int,
    most_clients: int,
) -> Error | None:
    """Why a client may not come in; None: it may.

    Args:
        transport: The way it came.
        hello: How it greeted.
        token: What those must know whose way here does not prove who they are; None: nobody may come that way.
        proven: Whether it has proved that it knows the token.
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
    if not (transport.trusted or proven):
        refusal = _refusal_of_token(transport, hello, token)
        if refusal is not None:
            return refusal
    if closing:
        return Error(code=ErrorCode.BUSY, message="the session is ending", fatal=True)
    if clients >= most_clients:
        message = f"{clients} clients are connected, the maximum allowed"
        return Error(
            code=ErrorCode.BUSY,
            message=message,
            remedy="try again when a client has left",
            fatal=True,
        )
    return None


def _refusal_of_token(transport: Transport, hello: Hello, token: str | None) -> Error | None:
    """Why the token in a greeting does not let it in; None: it does."""
    if transport.channel is Channel.PLAIN_TCP and hello.token:
        message = "the token was sent over plain TCP, where others can read it"
        remedy = "install the same release of GCspy at both ends, which never sends the token, and start the session with a new token"
    elif hello.token:
        if token is not None and hmac.compare_digest(hello.token.encode(), token.encode()):
            return None
        message, remedy = "wrong token", _REMEDY
    else:
        message, remedy = "no token", _REMEDY
    return Error(code=ErrorCode.TOKEN, message=message, remedy=remedy, fatal=True)
