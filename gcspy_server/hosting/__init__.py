"""Hosting drivers: one or several in a session, and what happens when one of them makes a mistake.

`recognition` finds the drivers that can monitor a process, `driver_group` runs the chosen ones,
`driver_server` is the server as seen by one of them. A driver of another package may raise, hang or
return nonsense, and must harm neither the others nor the session.
"""
