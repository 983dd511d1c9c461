"""One module for each command; each has a `command` that `gcspy.cli` finds by the module's name."""
