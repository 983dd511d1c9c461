"""The panel of holders with its tree, and its connection to the rest of the window."""
