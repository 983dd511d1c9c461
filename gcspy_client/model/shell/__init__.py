"""The surroundings of a session: processes and files to open, the state of the link, and the search for commands.

`launcher` has the requests of the window to the program that opened it.
"""
