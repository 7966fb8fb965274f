"""From the core to the chip, the UltraServer and the cluster: what a job takes, needs and costs.

Every function that computes works on numpy arrays as well as on numbers, elementwise: a search is one call
for all its configurations.  Units are SI: seconds, bytes, floating point operations, hertz.
"""

from pathlib import Path

__all__ = ["DATA"]

DATA = Path(__file__).parent / "data"
"""Systems, chips, models and measurements, each with its source."""
