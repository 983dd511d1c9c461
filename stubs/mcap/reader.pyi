from collections.abc import Iterator
from typing import IO, Any

class McapReader:
    def iter_messages(self) -> Iterator[tuple[Any, Any, Any]]: ...

def make_reader(stream: IO[bytes]) -> McapReader: ...
