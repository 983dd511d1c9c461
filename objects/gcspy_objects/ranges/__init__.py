"""A trace in ranges between checkpoints: planned, worked through apart from one another, and added up.

`plan_ranges`, `range_lives` and what adds their results are plain functions of a trace, its index and a range. Nothing
here knows in which process, or on which machine, a range is worked through.
"""
