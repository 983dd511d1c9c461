"""Counts of allocation sites that counters in the program give: received, and shown as a space."""
