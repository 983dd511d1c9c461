"""Clients of a session, whoever hosts it: listeners, connections, admission, roles, queues, allowances."""
