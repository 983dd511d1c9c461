# What GCspy uses of msgpack 1.2, which ships no types.
from typing import Any

class UnpackException(Exception): ...

class Unpacker:
    def __init__(
        self,
        *,
        raw: bool = ...,
        strict_map_key: bool = ...,
        max_buffer_size: int = ...,
        max_str_len: int = ...,
        max_bin_len: int = ...,
        max_array_len: int = ...,
        max_map_len: int = ...,
        max_ext_len: int = ...,
    ) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview) -> None: ...
    def unpack(self) -> Any: ...

def packb(o: object, *, use_bin_type: bool = ..., unicode_errors: str = ...) -> bytes: ...
def unpackb(packed: bytes) -> Any: ...
