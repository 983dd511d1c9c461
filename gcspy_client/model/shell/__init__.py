"""What surrounds a session: processes and files to open, the state of the link, and the search for commands.

`launcher` is what the window asks of the program that opened it.
"""
