"""Comparing: event with event, session with session."""
