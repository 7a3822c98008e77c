"""Python of a study's own, named in it as ``module:name``: a file beside the study's, or a module that is installed.

Reading a study does not run it: that happens when a run or a value needs it. Its source is kept with the results, and
reports tell its hash.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from twinnet.errors import did_you_mean, reason
from twinnet.given_files import read_given_text
from twinnet.own_modules import found_module
from twinnet.traffic.own_code import OwnCode, bring, run_source

__all__ = ["OWN_NAME", "OWN_OF_TRAFFIC", "OwnSource", "bring_own", "find_own"]

OWN_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
OWN_OF_TRAFFIC = {"congestion_control": "congestion control", "of": "application", "method": "estimator"}
"""The keys of traffic that may name Python of one's own, and what that is."""
_MOST_BYTES = 4_000_000


@dataclass(frozen=True)
class OwnSource:
    """The source of a function or a class.

    Attributes
    ----------
    name
        As the study names it: ``module:name``.
    file
        The file that it is in.
    source
        The text of that file.
    """

    name: str
    file: str
    source: str

    @property
    def sha256(self) -> str:
        """The hash of the source."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    def load(self) -> object:
        """Run the source, once for each text, and return what `name` names in it."""
        return getattr(run_source(self.source, self.file), self.name.partition(":")[2])


def find_own(name: str, beside: Mapping[str, str], what: str, example: str) -> tuple[str, str]:
    """Find the file and the source of `name`, without running it or a package that it is in.

    Parameters
    ----------
    name
        ``module:name``.
    beside
        The files beside the study's.
    what, example
        Of a message: what `name` should be, and one such.

    Raises
    ------
    ValueError
        There is no such module, or it defines no such name; the message says where it was looked for.
    """
    found = OWN_NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is no {what}; write module:name, such as {example}")
    module, wanted = found.groups()
    file, source = _source(module, beside)
    try:
        tree = ast.parse(source, file)
    except SyntaxError as error:
        raise ValueError(f"{file}, line {error.lineno}: {error.msg}") from None
    known = [one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    known += [
        target.id
        for one in tree.body
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    ]
    if wanted not in known:
        raise ValueError(f"{file} defines no {wanted!r}; {did_you_mean(wanted, known, f'write a {what}')}")
    return file, source


def bring_own(name: str, beside: Mapping[str, str], what: str) -> str:
    """Find `name`, which is a `what`; return the name by which hosts know it. Raises as :func:`find_own`."""
    own = OwnSource(name, *find_own(name, beside, what, "mine:Timid"))
    return bring(OwnCode(own.name, own.file, own.sha256, own.load, own.name, own.source))


def _source(module: str, beside: Mapping[str, str]) -> tuple[str, str]:
    missing = ""
    if "." not in module:
        try:
            return f"{module}.py", beside[f"{module}.py"]
        except ValueError as error:
            missing = f", and {error}"
    found = found_module(module)
    origin = None if found is None else found.origin
    if origin is None or not origin.endswith(".py"):
        raise ValueError(f"no module {module!r} is installed{missing}")
    try:
        return origin, read_given_text(Path(origin), _MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{origin} cannot be read: {reason(error)}") from None
