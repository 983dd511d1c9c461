"""CPython 3.9 to 3.15, monitored from outside: pymalloc's arenas, the collector's generations, the process's memory.

None of this runs in the target: it is read with ``process_vm_readv`` while it runs, so a snapshot
may catch it in the middle of a step. Data that fails its checks is read again and is then
*unknown*, never a guess and never zero.

Version, then layout (`layouts`), then readers (`obmalloc`, `generations`, `interpreters`, `memory_map`), then driver.
"""
