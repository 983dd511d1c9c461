"""The server interpreter: what a driver fills, and who gets it.

`gcspy_server.api` is the door for drivers and programs; everything else here is private to this room.
"""
