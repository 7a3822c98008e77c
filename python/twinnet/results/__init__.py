"""Results of measurements: reports of flows, samples of ports, captures, fidelity, and the tables of studies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinnet.studies.results import StudyResults

__all__ = ["load"]


def load(folder: str | os.PathLike[str], *, with_invalid: bool = False, run_code: bool = False) -> StudyResults:
    """Return the results of a study that are stored in `folder`, as :func:`twinnet.studies.load` does.

    Parameters
    ----------
    folder
        Such as ``results/mtu-sweep``.
    with_invalid
        Whether runs that missed their schedule are used too.
    run_code
        Whether metrics of the study's own may run that you have never run: read them first.
    """
    from twinnet import studies

    return studies.load(folder, with_invalid=with_invalid, run_code=run_code)
