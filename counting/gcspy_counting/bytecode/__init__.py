"""Code objects of CPython, taken apart into instructions and put together with instructions added."""
