"""The picture of a space: its pixels, the part of it that is seen, and the same tiles as a table or as text."""
