"""pymalloc's state: where it is, its arenas and pools, and their tiles."""
