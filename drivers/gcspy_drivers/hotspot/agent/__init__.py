"""The agent in a JVM: its file, how it is loaded, and where it connects to us."""
