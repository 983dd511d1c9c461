"""The spaces of a CPython process."""
