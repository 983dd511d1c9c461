"""Loops over arrays as machine code: when and by which thread they are compiled, and where the code is cached.

For drivers and object traces alike. Knows numba; does not know the loops.
"""
