"""HotSpot's own data: types, flags, counters, classes, code."""
