"""What a HotSpot says of itself: types, flags, counters, classes, code."""
