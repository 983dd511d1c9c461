"""History graphs."""
