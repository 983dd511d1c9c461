"""Level 3 and 4 of a JVM: objects found by walking a copy of the heap from each to the next, and their references.

The layout of objects (`form`), the ranges to walk (`layout`), threads' unfinished buffers
(`tlabs`), copying (`copying`), walking (`kernels`, and the same in numpy, `arrays`), and the
results (`walking`, `found`). Klasses are in `gcspy_drivers.hotspot.vm.klasses`.
"""
