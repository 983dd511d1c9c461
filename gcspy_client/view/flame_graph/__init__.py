"""The panel "Flame graph": allocation stacks of the objects of a tile, a space or the heap, merged.

Import from the modules; nothing is exported here.
"""
