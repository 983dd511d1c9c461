"""A range of a file's bytes from a storage: `read_range` accepts no more than was asked for.

A web server that is broken or hostile may answer a range with a body without an end, and fsspec would read all of it into memory. So
bodies of the web are read in pieces here. Other storages are those that the user has credentials for: fsspec reads them.

Knows fsspec and aiohttp; does not know recordings.

Source: RFC 9110, "Range Requests".
"""

from __future__ import annotations

from typing import Any, Final

from gcspy.storage.file_system import StoragePlace

__all__ = ["read_range"]

_PIECE: Final = 1 << 16


def read_range(place: StoragePlace, start: int, end: int) -> bytes:
    """Return the bytes from `start` to before `end`; more, by less than a piece, if the server sends more than that.

    Raises:
        Exception: Whatever fsspec or the library of the storage raises.
    """
    from fsspec.asyn import sync
    from fsspec.implementations.http import HTTPFileSystem

    system = place.system
    if isinstance(system, HTTPFileSystem):
        return bytes(sync(system.loop, _read_web, system, place.path, start, end))
    return bytes(system.cat_file(place.path, start=start, end=end))


async def _read_web(system: Any, url: str, start: int, end: int) -> bytes:
    session = await system.set_session()
    options = dict(system.kwargs)
    headers = {**options.pop("headers", {}), "Range": f"bytes={start}-{end - 1}"}
    data = bytearray()
    async with session.get(system.encode_url(url), headers=headers, **options) as response:
        if response.status == 404:
            raise FileNotFoundError(url)
        response.raise_for_status()
        async for piece in response.content.iter_chunked(_PIECE):
            data += piece
            if len(data) > end - start:
                break
    return bytes(data)
