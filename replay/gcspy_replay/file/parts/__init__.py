"""One part of a recording: bytes, entries, and the way to its chunks."""
