"""One module a command; each has a `command` that `gcspy.cli` finds by the module's name."""
