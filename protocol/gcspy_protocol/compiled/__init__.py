"""Encoding and reading in C, for whole spaces and events at a time; without the library, Python and numpy give the same.

The sources are beside the modules; ``hatch_build.py`` builds them when gcspy is installed.
"""
