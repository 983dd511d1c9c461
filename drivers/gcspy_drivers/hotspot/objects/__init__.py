"""Level 3 and 4 of a JVM: objects found by walking a copy of the heap from each to the next, and their references.

How objects look (`form`), what is to be walked (`layout`), threads' unfinished buffers (`tlabs`), copying (`copying`), walking
(`kernels`, and the same in numpy, `arrays`), and what comes of it (`walking`, `found`). Klasses are in `gcspy_drivers.hotspot.vm.klasses`.
"""
