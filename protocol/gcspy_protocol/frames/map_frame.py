"""Frames whose payload is a map: compressed, but never to less than the peer believes.

A map of many equal texts shrinks to almost nothing, and so does one that was made to exhaust a
reader's memory. Readers refuse what unpacks to too many times its size (`Limits.unpacked_map_bytes`); so
such a map is sent as it is.

Knows maps and frames; does not know messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gcspy_protocol.frames.fields import pack_map
from gcspy_protocol.frames.frame import HEADER, Frame, pack_frame
from gcspy_protocol.limits import CLIENT_LIMITS

__all__ = ["pack_map_frame"]


def pack_map_frame(
    frame_type: int,
    fields: Mapping[str, Any],
    *,
    space: int = 0,
    sequence: int = 0,
    time_nanos: int = 0,
) -> Frame:
    """Put a map into a frame.

    Raises:
        LocalProtocolError: A number does not fit its place.
    """
    payload = pack_map(fields)
    frame = partial(
        pack_frame, frame_type, payload, space=space, sequence=sequence, time_nanos=time_nanos
    )
    packed = frame()
    sent = len(packed.data) - HEADER.size
    if len(payload) > CLIENT_LIMITS.unpacked_map_bytes(sent):
        return frame(compress=False)
    return packed
