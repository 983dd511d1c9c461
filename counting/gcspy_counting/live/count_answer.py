"""Bytes of an answer about counts, as both ends of a line know them.

A request is one byte. An answer, little-endian::

    4s magic, u32 bytes of the text, u64 sites, u64 monotonic ns, u64 ns for which no other thread ran
    text: a JSON object
    i64 count of each site; -1: its counters contradict each other
    u16 number of counters that each count follows from

A site keeps its number. The text has ``sites``: of each that is new since the last answer the number of its file, its line, column, function, what it makes, 1
if it always allocates, and the bytes of each time or -1; ``files``: of each new one its name and its source, or null; ``increments``, ``counters``,
``code_objects``, ``not_countable``, ``raises``, ``instrumenting_secs``; ``uncounted``: calls that run code without counters; ``found`` and ``done``: code
objects of a program that ran already.
"""

from __future__ import annotations

import struct

__all__ = ["HEADER", "MAGIC", "REQUEST"]

MAGIC = b"GCNT"
HEADER = struct.Struct("<4sIQQQ")
REQUEST = b"c"
