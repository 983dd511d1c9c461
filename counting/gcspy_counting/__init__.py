"""Exact counts of executions of allocation sites in Python programs, with few counters.

A pure room: it works on code objects of the interpreter that runs it (CPython 3.11 to 3.14) and knows no window, server or driver; sockets are known to
`live` only, which tells counts to a process that monitors the program.
It is imported into other people's programs, so it is the standard library and nothing else.

`bytecode` takes code objects apart and puts them together; `flow_graph` finds blocks, edges and sites; `plans` decides where counters go; `solver` computes the
counts of all sites from the counters; `instrumented_code` joins these for one code object, `program` for a whole program, `live` for one that is monitored, or runs
already; `snapshot` reads all counters and frames at one moment.
"""
