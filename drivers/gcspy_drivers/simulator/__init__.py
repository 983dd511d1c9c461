"""A simulated heap, programs that use it, and collectors small enough to read: for classrooms (``docs/simulator.md``).

`heap` is memory and the layout of objects, `plan` what a collector is, `mutator` what a program may do, `verify` says whether all of them are
right. `policies` are what collectors share, `plans` the collectors, one module each.
"""
