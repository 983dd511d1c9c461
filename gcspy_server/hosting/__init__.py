"""Hosting drivers: one or several in a session, and what happens when one of them makes a mistake.

`recognition` finds who can watch a process, `driver_group` runs those that were chosen, `driver_server` is the server as
one of them sees it. A driver of somebody else's package is code like any other: it may raise, hang or return nonsense, and must
harm neither the others nor the session.
"""
