"""Compact records: what chunks of version 2 consist of (FORMAT.md sections 10 and 11)."""
