"""The server interpreter: the data that a driver fills, and the clients that receive it.

`gcspy_server.api` is public, for drivers and programs; everything else is private to this package.
"""
