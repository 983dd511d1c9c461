"""Lessons in the window: their text and questions in a panel, their actions on the session, and the parts that they hide."""
