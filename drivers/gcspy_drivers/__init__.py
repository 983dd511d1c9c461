"""Drivers: each maps one kind of memory manager to spaces, tiles and streams."""
