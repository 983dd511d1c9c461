"""Who holds objects: the panel with its tree, and what it has to do with the rest of the window."""
