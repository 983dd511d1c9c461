"""The heap of each collector: how it is read, and how it becomes a space."""
