"""The manifest of a pack: what is in it, with the hash of each file, what made it, and what it came to.

It is read from others, so all of it has a form and bounds.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from twinnet.given_files import given_json

__all__ = ["FORMAT", "MANIFEST", "CameTo", "Manifest", "read_manifest"]

MANIFEST = "MANIFEST.json"
FORMAT = 1
_Text = Annotated[StrictStr, Field(max_length=100_000)]
_Word = Annotated[StrictStr, Field(max_length=200, pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\z")]
_Name = Annotated[StrictStr, Field(min_length=1, max_length=600)]
_Sha256 = Annotated[StrictStr, Field(pattern=r"\A[0-9a-f]{64}\z")]


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Open(_Strict):
    """What may have more: other versions tell other things besides."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="allow", frozen=True)


class StatedVerdict(_Open):
    """The verdict on a statement, and the numbers that it rests on, in words."""

    id: _Word
    verdict: _Word
    numbers: list[_Text]


class CameTo(_Open):
    """The outcome of the results, as :func:`~twinnet.report.summary.summary_record` has it."""

    answer: _Text
    in_words: _Text
    runs: dict[_Word, int]
    fidelity: dict[_Word, int]
    statements: list[StatedVerdict]
    means: list[dict[str, Any]]


class Manifest(_Strict):
    """The manifest of a pack.

    Attributes
    ----------
    format
        The version of the form of packs.
    study
        The study's name.
    twinnet, python, machine
        The versions that made it, and the machine's architecture.
    came_to
        What the results come to.
    files
        The SHA-256 of each file by its name.
    """

    format: Literal[1]
    study: _Word
    twinnet: _Word
    python: _Word
    machine: _Word
    came_to: CameTo
    files: dict[_Name, _Sha256]


def read_manifest(content: bytes) -> Manifest:
    """Return the manifest that `content` is; raises `ValueError` that names the part which is wrong."""
    given: object = given_json(content)
    if not isinstance(given, dict):
        raise ValueError("its manifest is no JSON object")
    form = cast("dict[str, object]", given).get("format")
    if form != FORMAT or isinstance(form, bool):
        raise ValueError(f"it is of format {form!r:.40}, and this version reads format {FORMAT}")
    try:
        return Manifest.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"its manifest is wrong at {place:.120}: {first['msg']:.200}") from None
