"""HotSpot 8 to 25, monitored from outside: the heap of each collector as its own spaces, cards, code cache and metaspace.

None of this runs in the target: its own tables (``gHotSpotVMStructs`` and friends) define where
everything is, and it is read with ``process_vm_readv`` while it runs. Data that fails its checks is
read again and is then *unknown*, never a guess and never zero; data that a version does not export
is *not available*, with the reason.

Tables (`tables`), then flags and counters (`flags`, `counters`), then a reader a kind of heap (`generational`, `g1`, …), then
spaces, one module each, then driver.
"""
