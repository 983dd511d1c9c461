"""The panel of holders with its tree, allocation sites of what grew, and their connection to the rest of the window."""
