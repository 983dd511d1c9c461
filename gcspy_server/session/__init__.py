"""The half of the server interpreter that runs in the trio thread: listeners, clients, roles, queues."""
