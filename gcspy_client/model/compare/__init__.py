"""Differences: of two states of a session, or of two sessions.

`difference` handles one stream, `comparison` all spaces, `difference_source` makes a space of
differences; `pairs` matches the items of two sessions.
"""
