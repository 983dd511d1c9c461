"""Lessons in the window: their text and questions in a panel, what they do to the session, and what they hide."""
