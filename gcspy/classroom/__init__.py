"""Teaching material to collect and mark: trials of students' collectors, and their reports.

Knows the simulator and lessons; knows no window.
"""

from __future__ import annotations
