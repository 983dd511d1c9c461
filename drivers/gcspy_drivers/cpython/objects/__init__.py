"""Level 3 of the CPython driver: which blocks of pymalloc are Python objects, of which type, and in which generation.

Pools are copied in bulk while the target runs (`blocks`). Words that may be types are verified once
and remembered (`types`), and identify objects in blocks (`scan`). The collector's lists are
assembled from the copy (`lists`). Contradictory data is unknown. This package knows neither tiles
nor streams.
"""
