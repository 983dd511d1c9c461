"""The state of CPython's collector: generations, collections, survivors, time."""
