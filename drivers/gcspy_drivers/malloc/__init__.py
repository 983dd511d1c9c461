"""The driver for glibc's malloc: the native heap of any process, in any language.

Finding and walking is in `gcspy_drivers.native_heap`; this maps it to spaces and streams.
"""
