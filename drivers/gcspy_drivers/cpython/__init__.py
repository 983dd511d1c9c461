"""CPython 3.9 to 3.15, watched from outside: pymalloc's arenas, the collector's generations, the process's memory.

Nothing of this runs in the target: it is read with ``process_vm_readv`` while it goes on, so a snapshot may catch it in
the middle of a step. What does not pass its checks is read again and then *unknown*, never a guess and never zero.

Version, then layout (`layouts`), then readers (`obmalloc`, `generations`, `interpreters`, `memory_map`), then driver.
"""
