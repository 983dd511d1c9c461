"""HotSpot 8 to 25, watched from outside: the heap of each collector as its own spaces, cards, code cache and metaspace.

Nothing of this runs in the target: its own tables (``gHotSpotVMStructs`` and friends) say where everything is, and it is read with
``process_vm_readv`` while it goes on. What does not pass its checks is read again and then *unknown*, never a guess and never
zero; what a version does not export is *not available*, with the reason.

Tables (`tables`), then flags and counters (`flags`, `counters`), then a reader a kind of heap (`generational`, `g1`, …), then
spaces, one module each, then driver.
"""
