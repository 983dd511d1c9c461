"""Sums of the objects of a heap, by tile and category, kept while objects come, move and go."""
