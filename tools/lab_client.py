"""Write requests.py and replies.py of python/twinnet/lab_process, the typed client: ``python tools/lab_client.py``.

The core tells the requests, their fields and the forms of their answers (``_core.lab_protocol()``). A test compares
the files with what this gives, so that they are always true.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twinnet import _core

__all__ = ["REPLIES", "REQUESTS", "modules"]

REQUESTS = Path(__file__).parents[1] / "python/twinnet/lab_process/requests.py"
REPLIES = REQUESTS.with_name("replies.py")
LATER = ("controller.attach", "controllers.wait", "interface.offer", "links.counters", "now", "ports", "stop", "wait")
"""Requests whose answers somebody waits for beside other things."""
FIELD_KINDS = {"text": "str", "bool": "bool", "whole number": "int", "picoseconds": "int", "object": "JsonObject",
               "object of text": "Mapping[str, str]", "object of whole numbers": "Mapping[str, int]"}  # fmt: skip
"""Types of fields by the words of the reference page."""
ANSWER_KINDS = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
COLUMNS = 120
WRITTEN = """
Written by ``python tools/lab_client.py`` from crates/lab/src/protocol; change it there.
\"\"\"

from __future__ import annotations

"""
REPLIES_HEAD = f'''"""The answers to the requests of the lab protocol (docs/reference/lab-protocol.md) as classes.
{WRITTEN}from typing import Literal, NotRequired, TypedDict

from twinnet.lab_process.pending_reply import JsonObject

'''
REQUESTS_HEAD = f'''"""The requests of the lab protocol (docs/reference/lab-protocol.md) as methods.
{WRITTEN}from collections.abc import Mapping, Sequence
from typing import Literal, cast

from twinnet.lab_process.answering_lab import AnsweringLab
from twinnet.lab_process.pending_reply import Json, JsonObject, PendingReply
'''
LAB = '''

class LabRequests(AnsweringLab):
    """A lab that answers requests: a lab process, a lab in this process, or the parts of a network on several machines.

    Each request is a method with the request's fields. It returns the value of the answer, and raises `LabError` with
    the name of a refusal, or `LabClosed` when the lab has ended. Methods called ``..._later`` return at once.
    """
'''
GIVEN = '''

def _given(**fields: Json) -> JsonObject:
    """The fields that are not null; the others may be left out."""
    return {name: value for name, value in fields.items() if value is not None}
'''


def modules() -> dict[Path, str]:
    """Return the text of each of the two files."""
    _, requests, schemas = _core.lab_protocol()
    answers = Answers(**json.loads(schemas))
    methods = "".join(_methods(one, answers) for one in json.loads(requests))
    classes = "".join(f"\n\n{answers.classes[name]}" for name in sorted(answers.classes))
    used = [name for name in sorted(answers.classes, key=str.lower) if re.search(rf"\b{name}\b", methods)]
    imported = f'from twinnet.lab_process.replies import {", ".join(used)}\n\n__all__ = ["LabRequests"]\n'
    texts = {
        REPLIES: f"{REPLIES_HEAD}__all__ = {json.dumps(sorted(answers.classes))}\n{classes}",
        REQUESTS: f"{REQUESTS_HEAD}{imported}{LAB}{methods}{GIVEN}",
    }
    return {file: _formatted(file, text) for file, text in texts.items()}


def _formatted(file: Path, text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(file), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


class Answers:
    """The types of answers in Python, and the classes that they need, from their JSON schemas."""

    def __init__(self, answers: Mapping[str, Any], types: Mapping[str, Any]) -> None:
        self._answers, self._types = answers, types
        self.classes: dict[str, str] = {}

    def kind(self, answer: str) -> str:
        """Return the type of `answer`; ``None`` for one that tells nothing."""
        schema = self._answers[answer]
        if schema.get("type") == "object" and not schema.get("properties") and not schema.get("additionalProperties"):
            return "None"
        told = {**schema, "description": f"The answer to {schema.get('description', answer)}"}
        return self._kind(told, f"{answer}Reply")

    def _kind(self, schema: Mapping[str, Any], name: str = "") -> str:
        if "$ref" in schema:
            named = schema["$ref"].rsplit("/", 1)[1]
            return self._kind(self._types[named], named)
        if several := schema.get("anyOf"):
            return " | ".join(self._kind(one) for one in several)
        if words := [one["const"] for one in schema.get("oneOf", ())] or schema.get("enum"):
            return f"Literal{json.dumps(words)}"
        match schema["type"]:
            case [*kinds]:
                return " | ".join(self._kind({**schema, "type": one}) for one in kinds)
            case "array":
                return f"list[{self._kind(schema['items'])}]"
            case "object":
                return self._object(schema, name)
            case kind:
                return ANSWER_KINDS[kind]

    def _object(self, schema: Mapping[str, Any], name: str) -> str:
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            return f"dict[str, {self._kind(more)}]"
        if more:
            return "JsonObject"
        lines = [f"class {name}(TypedDict):", _docstring(" ".join(schema["description"].split()), "    ")]
        for key, field in schema["properties"].items():
            kind = self._kind(field)
            lines.append(f"    {key}: {kind if key in schema.get('required', ()) else f'NotRequired[{kind}]'}")
            lines.append(_docstring(" ".join(field["description"].split()), "    "))
        self.classes[name] = "\n".join(lines) + "\n"
        return name


def _methods(request: Mapping[str, Any], answers: Answers) -> str:
    """The method of `request`, and the one that returns at once where somebody needs it."""
    do, kind, fields = request["do"], answers.kind(request["answer"]), request["fields"]
    name, text = do.replace(".", "_"), _plain(request["is"])
    for field in fields:
        text += f"\n`{field['name']}`: {_plain(field['is'])}"
    if fields:
        text = text.replace("\n", "\n\n", 1)
    # Those that may be left out come last.
    given = sorted(((field["name"], _field_kind(field["type"])) for field in fields), key=lambda one: "None" in one[1])
    parameters = [f"{field}: {kind}{' = None' if 'None' in kind else ''}" for field, kind in given]
    sent = ", ".join(f"{field}={field}" for field, _ in given)
    call = f'("{do}", {f"_given({sent})" if sent else "{}"}'
    if "Descriptor" in request["is"]:
        parameters.append("descriptors: Sequence[int] = ()")
        call += ", descriptors"
    head = f"({', '.join(['self', *(['*', *parameters] if parameters else [])])})"
    asked = f"self.answer{call})"
    returned = asked if kind == "None" else f'return cast("{kind}", {asked})'
    written = f"\n    def {name}{head} -> {kind}:\n{_docstring(text, '        ')}\n        {returned}\n"
    if do in LATER:
        text = f"Ask as :meth:`{name}` does, and return at once."
        kind = f"PendingReply[{kind}]"
        written += f"\n    def {name}_later{head} -> {kind}:\n{_docstring(text, '        ')}\n"
        written += f'        return cast("{kind}", self.submit{call}))\n'
    return written


def _field_kind(words: str) -> str:
    """The type of a field that the reference page describes with `words`."""
    if words.endswith(" or null"):
        return f"{_field_kind(words.removesuffix(' or null'))} | None"
    if words.startswith("array of "):
        return f"Sequence[{_field_kind(words.removeprefix('array of '))}]"
    if chosen := re.findall(r'`("\w+")`', words):
        return f"Literal[{', '.join(chosen)}]"
    return " | ".join(FIELD_KINDS[one] for one in words.split(" or "))


def _plain(text: str) -> str:
    """`text` without the links of the reference page."""
    alone = re.sub(r" \(\[[^]]*\]\([^)]*\)\)", "", text)
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", alone).split())


def _docstring(text: str, indent: str) -> str:
    if "\n" not in text and len(indent) + len(text) + 6 <= COLUMNS:
        return f'{indent}"""{text}"""'
    lines: list[str] = []
    for place, one in enumerate(text.split("\n")):
        lines += _wrapped(one, indent, 3 if place == 0 else 0) or [""]
    first = lines[0].removeprefix(indent)
    return "\n".join([f'{indent}"""{first}', *lines[1:], f'{indent}"""'])


def _wrapped(text: str, indent: str, less: int) -> Sequence[str]:
    return textwrap.wrap(
        text, COLUMNS - less, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


if __name__ == "__main__":
    for file, text in modules().items():
        file.write_text(text)
