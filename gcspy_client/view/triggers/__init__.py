"""Triggers: their list, what writes one, and the notice that one fired."""
