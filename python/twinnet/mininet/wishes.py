"""The variables by which a script's machine learns what the caller wants."""

from __future__ import annotations

__all__ = [
    "EXPORT_VARIABLE",
    "PYTHON_2_VARIABLE",
    "REPORT_VARIABLE",
    "SCRIPT_VARIABLE",
    "SEED_VARIABLE",
    "TELLS_VARIABLE",
]

EXPORT_VARIABLE = "TWINNET_MININET_EXPORT"
"""The file that the network is written to."""
REPORT_VARIABLE = "TWINNET_MININET_REPORT"
"""The file that the page about the run is written to."""
SCRIPT_VARIABLE = "TWINNET_MININET_SCRIPT"
"""The name of the script."""
PYTHON_2_VARIABLE = "TWINNET_MININET_PYTHON_2"
"""Whether the script is written for Python 2 and is to be converted: 1."""
SEED_VARIABLE = "TWINNET_MININET_SEED"
"""On the virtual clock the seed of all randomness; elsewhere there is none."""
TELLS_VARIABLE = "TWINNET_MININET_TELLS"
"""Whether the script tells when it reads what is typed: 1."""
