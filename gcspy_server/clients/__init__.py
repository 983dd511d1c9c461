"""The clients of a live server: their session, and the effect of their commands."""
