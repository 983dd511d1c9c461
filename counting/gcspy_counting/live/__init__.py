"""Counting in a program that is monitored: the line to the one that monitors it, and counters in functions that are there already."""
