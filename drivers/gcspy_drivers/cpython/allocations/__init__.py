"""The sites at which a CPython program allocated its memory, as ``tracemalloc`` keeps them in the program's memory."""
