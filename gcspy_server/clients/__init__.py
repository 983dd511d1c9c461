"""The clients of a live server: its session, and what their commands do to it."""
