"""Spaces and their tiles: each space in a panel, drawn by tiles, a renderer or a table."""
