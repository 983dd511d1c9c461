"""Differences: of two states of a session, or of two sessions.

`difference` is that of one stream, `comparison` that of all spaces, `difference_source` makes a space of it; `pairs`
says what belongs together in two sessions.
"""
