"""Loops over arrays as machine code: when and by which thread they are compiled, and where the code is cached.

For drivers, object traces and the protocol alike. Knows numba and the libraries in C; does not know the loops.
"""
