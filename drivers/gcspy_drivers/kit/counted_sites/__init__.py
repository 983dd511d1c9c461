"""Allocation sites whose executions counters in the target's code count: what is reported of them, and their space."""
