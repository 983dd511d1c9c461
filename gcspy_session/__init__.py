"""Clients of a session, for any host: listeners, connections, admission, roles, queues, allowances."""
