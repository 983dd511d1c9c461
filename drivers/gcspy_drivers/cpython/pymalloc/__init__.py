"""pymalloc's state: its place, its arenas and pools, and their tiles."""
