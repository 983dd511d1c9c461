"""Admission: decides whether a greeting is accepted.

Knows tokens and the identity of the peer; does not know the session.
"""

from __future__ import annotations

import hmac

from gcspy_protocol.handshake.credentials import Channel
from gcspy_protocol.messages import Error, ErrorCode, Hello

from gcspy_session.network.transport import Transport

__all__ = ["has_to_prove", "refusal_of"]

_REMEDY = "give the server's token in a token file, in GCSPY_TOKEN or at the prompt"


def has_to_prove(transport: Transport, hello: Hello, token: str) -> bool:
    """Whether a client that offers a proof of the token has to give it.

    Args:
        transport: Its transport.
        hello: Its greeting.
        token: The session's token; empty: there is none.
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
    """Why a client is refused; None: it is accepted.

    Args:
        transport: Its transport.
        hello: Its greeting.
        token: The token for clients whose transport does not identify them; None: such clients are
            refused.
        proven: Whether it has proved that it knows the token.
        closing: Whether the session is ending.
        clients: Number of current clients.
        most_clients: Maximum number of clients.
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
    """Why the token in a greeting is not accepted; None: it is."""
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
