"""Collectors and programs in files of students: loaded, run step by step, and told what is wrong in the terms of their file.

`guard` runs a step of such code, `source` loads a file, `collector` makes a plan of one, `objects` is what its functions work on.
"""

from __future__ import annotations
