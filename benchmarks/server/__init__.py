"""The server: encoding, many viewers, floods, recorders that cannot follow."""
