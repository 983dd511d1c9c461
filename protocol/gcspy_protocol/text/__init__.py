"""Texts from strangers: how they are displayed and written into tables."""
