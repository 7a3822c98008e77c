"""Studies from Python: run one, load what was stored, look at it, compare.

import twinnet as tn

results = tn.studies.run("mtu-sweep", preset="tiny")
print(results)
results.means
"""

from twinnet.studies.results import StudyComparison, StudyResults
from twinnet.studies.running import StudyFailed, load, names, run

__all__ = ["StudyComparison", "StudyFailed", "StudyResults", "load", "names", "run"]
