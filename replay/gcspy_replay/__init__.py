"""Sessions as files: `gcspy_replay.file` writes, reads, checks, cuts and exports recordings (FORMAT.md)."""
