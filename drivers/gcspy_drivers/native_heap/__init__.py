"""glibc's malloc in another process: found by relations between its variables, and walked chunk by chunk.

For drivers: the driver ``malloc`` shows all of it, others name what of their memory is malloc's.
Knows malloc's structures, and neither spaces nor streams. Loops over chunks are in C
(``compiled``), each with a twin in Python.
"""
