"""Values, names and keys of the tiles of a stream, as arrays."""
