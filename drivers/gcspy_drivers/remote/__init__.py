"""Reading another process on Linux, harmlessly: identity, memory maps, ELF symbols, bounded reads.

Knows the kernel's interfaces (``/proc``, ``process_vm_readv``, ELF) and nothing of any runtime: what the
bytes mean is for the driver. Nothing here stops, signals, traces or writes to the target.
"""
