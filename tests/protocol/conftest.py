"""Hypothesis for the protocol's tests: no deadlines, because a slow machine is no defect, and no files."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "protocol",
    deadline=None,
    database=None,
    print_blob=True,
    # Values of sixteen bytes and sessions of forty steps are drawn; on a busy machine that counts as slow.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("protocol")
