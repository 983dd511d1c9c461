"""A simulated heap, programs that use it, and collectors small enough to read: for classrooms (``docs/simulator.md``).

`heap` is the memory and the layout of objects, `plan` the base class of collectors, `mutator` the operations of programs; `verify` checks all of
them. `policies` are the common parts of collectors, `plans` the collectors, one module each.
"""
