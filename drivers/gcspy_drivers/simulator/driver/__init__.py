"""The driver of the simulator: what its collectors and heaps look like in spaces and streams, after table 1 of the GCspy paper.

`session` puts it together, `events` says which events there are, `settings` what can be changed while it runs; each of the other
modules builds one space. Knows the simulator and `gcspy_server.api`.
"""

from __future__ import annotations

from gcspy_drivers.simulator.driver.clock import PacedClock
from gcspy_drivers.simulator.driver.lockstep import Lockstep
from gcspy_drivers.simulator.driver.options import SimulationOptions, parse_size
from gcspy_drivers.simulator.driver.session import SimulatorSession

__all__ = ["Lockstep", "PacedClock", "SimulationOptions", "SimulatorSession", "parse_size"]
