"""Allocation sites of a JVM: the agent in Java that gives its classes counters, and what these say."""
