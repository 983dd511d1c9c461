"""Encoding in C, for whole spaces at a time; without the library, `gcspy_protocol.streams` gives the same bytes.

The sources are beside the modules; ``hatch_build.py`` builds them when gcspy is installed.
"""
