"""The graph of the objects of a small heap."""
