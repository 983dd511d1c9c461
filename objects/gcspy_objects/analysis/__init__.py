"""The fate of a program's objects: queries on all lives of a trace, in SQL on columns.

    store       the lives, streamed to Parquet, and the engine (DuckDB) that answers
    findings    an answer: a table that knows its units, and what is to be known besides
    kinds       allocated, survived, promoted, died: by type, by site, in each collection
    lifetimes   how long objects lived, in collections and in allocated bytes
    survival    which share was still there after so long

Needs the extra ``objects``. Knows lives as the rebuilt heap gives them; does not know traces, windows or command lines.
"""
