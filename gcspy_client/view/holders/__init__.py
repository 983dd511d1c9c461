"""Who holds objects: the panel with its tree, and its connection to the rest of the window."""
