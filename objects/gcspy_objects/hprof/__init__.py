"""Heap dumps in the format HPROF, as JVMs write them: all objects of one moment, what they refer to, and where references begin.

Knows the format and Java's names; knows neither processes, nor how a dump came to be, nor who asks.
"""
