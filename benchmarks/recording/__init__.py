"""Recordings: writing, size, seeking, playing."""
