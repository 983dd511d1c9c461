"""`gcspy trace`: a program is run, and each allocation and each free of it is written to an object trace.

``preloaded`` is loaded into the program, and fills buffers in memory that it shares with gcspy
(``gcspy_compiled/trace_segment.h``). ``drain`` empties them, in C (``compiled``), and puts the
events of all threads into one order. ``trace_file`` writes them.
"""
