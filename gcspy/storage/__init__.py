"""Recordings in object storage and on web servers: read by ranges, and written part by part."""
