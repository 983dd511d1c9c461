"""Sockets: the connections of clients, and the transport of their bytes."""
