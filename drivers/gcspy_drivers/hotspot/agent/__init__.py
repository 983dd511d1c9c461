"""The agent in a JVM: where it is, how it gets in, and where it meets us."""
