"""Loops over arrays as machine code: when they are compiled, by whom, and where that is kept.

For drivers and object traces alike. Knows numba; does not know what is compiled.
"""
