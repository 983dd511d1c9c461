"""Sockets: where clients come from, and what carries their bytes."""
