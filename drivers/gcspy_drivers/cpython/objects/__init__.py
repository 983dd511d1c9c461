"""Level 3 of the CPython driver: which blocks of pymalloc are Python objects, of which type, and in which generation.

Pools are copied in bulk while the target goes on (`blocks`), words that can be types are verified once and remembered
(`types`), blocks are told apart by them (`scan`), and the collector's lists are put together from the copy (`lists`). What
contradicts itself is unknown. Nothing of this knows tiles or streams.
"""
