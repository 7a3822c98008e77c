"""The mechanical part of what makes a script for Python 2 one for Python 3: statements, names and literals that are
spelt differently. What a program means is left alone: whole numbers that are divided, and maps that are indexed."""

from __future__ import annotations

import builtins
import itertools
import re
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from functools import reduce
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

__all__ = ["convert_modules", "for_python_3"]

_TOKEN = re.compile(
    r"""
    (?P<string>[rRuUbB]{0,2}(?:
        \"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<skip>\#[^\n]*|\\\r?\n|[ \t\f]+)
  | (?P<newline>\r?\n)
  | (?P<number>\d[\w.]*|\.\d\w*)
  | (?P<name>[^\W\d]\w*)
  | (?P<op><>|>>|\*\*|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMES = {
    "raw_input": "input",
    "xrange": "range",
    "unicode": "str",
    "basestring": "str",
    "long": "int",
    "unichr": "chr",
}
_METHODS = {
    "getcwdu": "getcwd",
    "iteritems": "items",
    "iterkeys": "keys",
    "itervalues": "values",
    "has_key": "__contains__",
    "maxint": "maxsize",
}
_MODULES = {
    "BaseHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SimpleHTTPServer": "http.server",
    "SimpleXMLRPCServer": "xmlrpc.server",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "Tkinter": "tkinter",
    "__builtin__": "builtins",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "copy_reg": "copyreg",
    "httplib": "http.client",
    "thread": "_thread",
    "tkFileDialog": "tkinter.filedialog",
    "tkFont": "tkinter.font",
    "tkMessageBox": "tkinter.messagebox",
    "tkSimpleDialog": "tkinter.simpledialog",
    "ttk": "tkinter.ttk",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "xmlrpclib": "xmlrpc.client",
}
_OF_URLLIB = ("quote", "quote_plus", "unquote", "unquote_plus", "urlencode")
"""What the module `urllib` itself had."""
_HEADERS = {"if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class"}
_OPENING, _CLOSING = set("([{"), set(")]}")

_Token = tuple[str, str]


def for_python_3(source: str) -> str:
    """Return `source` with print statements, ``except A, e``, ``raise A, b``, ``exec a in b``, backticks, ``<>``, old
    literals, and names and modules of Python 2 as Python 3 has them. Tabs at the beginnings of lines count to the next
    multiple of 8 columns, as they did."""
    return "".join(_statement(tokens) for tokens in _statements(source))


class _Converting(SourceFileLoader):
    """Loads a module, converted where it is none of Python 3; nothing is written beside it."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            return super().source_to_code(data, path)
        except SyntaxError:
            return super().source_to_code(for_python_3(bytes(data).decode(errors="replace")).encode(), path)

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        pass


def convert_modules() -> None:
    """Have modules that are imported from now on converted too, but not those of Python and of ourselves. Built-in
    functions of Python 2 are there for those that need no converting."""
    builtins.__dict__.update({name: getattr(builtins, new) for name, new in _NAMES.items()})
    builtins.__dict__.update(reduce=reduce, cmp=_compared)
    urllib.__dict__.update({name: getattr(urllib.parse, name) for name in _OF_URLLIB})
    urllib.__dict__.update(urlopen=urllib.request.urlopen, urlretrieve=urllib.request.urlretrieve)
    itertools.__dict__.update(izip=zip, imap=map, ifilter=filter, izip_longest=itertools.zip_longest)
    hook = FileFinder.path_hook((ExtensionFileLoader, EXTENSION_SUFFIXES), (_Converting, SOURCE_SUFFIXES))
    ours = [Path(place).resolve() for place in (sys.prefix, sys.base_prefix, Path(__file__).parents[2])]

    def of_scripts(path: str) -> FileFinder:
        if any(Path(path).resolve().is_relative_to(place) for place in ours):
            raise ImportError(f"{path} is not a script's")
        return hook(path)  # pyright: ignore[reportReturnType]

    sys.path_hooks.insert(0, of_scripts)
    sys.path_importer_cache.clear()


def _compared(one: Any, other: Any) -> int:
    return (one > other) - (one < other)


def _tokens(source: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(source):
        yield str(found.lastgroup), found[0]


def _statements(source: str) -> Iterator[list[_Token]]:
    """Yield the tokens of each statement, with what ends it: the end of the line, ``;``, or ``:`` after a header."""
    statement: list[_Token] = []
    depth = lambdas = 0
    for token in _tokens(source):
        kind, text = token
        statement.append(token)
        depth += (text in _OPENING) - (text in _CLOSING) if kind == "op" else 0
        lambdas += text == "lambda"
        ends = kind == "newline" or (kind == "op" and text == ";")
        if kind == "op" and text == ":" and depth == 0:
            if lambdas:
                lambdas -= 1
            else:
                ends = next((one[1] for one in statement if one[0] != "skip"), "") in _HEADERS
        if ends and depth == 0:
            yield statement
            statement, lambdas = [], 0
    if statement:
        yield statement


def _statement(tokens: list[_Token]) -> str:
    begin = next((at for at, (kind, _) in enumerate(tokens) if kind not in ("skip", "newline")), len(tokens))
    end = len(tokens)
    while end > begin and (tokens[end - 1][0] in ("skip", "newline") or tokens[end - 1][1] in (";", ":")):
        end -= 1
    lead, body, tail = tokens[:begin], tokens[begin:end], tokens[end:]
    word = body[0][1] if body else ""
    made = _spelt(body)
    if word == "print" and _is_statement(body):
        made = _printed(body[1:])
    elif word == "exec" and _is_statement(body):
        made = "exec(" + ", ".join(_spelt(part).strip() for part in _parts(body[1:], "in")) + ")"
    elif word == "raise" and len(parts := [_spelt(part).strip() for part in _parts(body[1:], ",")]) > 1:
        made = f"raise {parts[0]}({parts[1]})" + (f".with_traceback({parts[2]})" if len(parts) > 2 else "")
    elif word == "except" and len(parts := _parts(body[1:], ",")) == 2:
        made = f"except{_spelt(parts[0])} as {_spelt(parts[1]).strip()}"
    elif word == "import":
        made = "import" + ",".join(_imported(_spelt(part)) for part in _parts(body[1:], ","))
    elif word == "from" and len(body) > 2 and body[2][1] in _MODULES:
        made = f"from {_MODULES[body[2][1]]}{_spelt(body[3:])}"
    indented = "".join(text.expandtabs(8) if text.isspace() else text for _, text in lead)
    return indented + made + "".join(text for _, text in tail)


def _imported(part: str) -> str:
    name, _, called = part.strip().partition(" as ")
    name = name.strip()
    return f" {_MODULES[name]} as {called.strip() or name}" if name in _MODULES else part


def _is_statement(body: list[_Token]) -> bool:
    """Whether `print` or `exec` begins a statement: not a call of a function, an attribute or a variable."""
    rest = [token for token in body[1:] if token[0] != "skip"]
    if not rest:
        return True
    if rest[0][1] != "(":
        return rest[0][0] != "op" or rest[0][1] in (">>", "-", "`", "[", "{", "~", "+")
    depth = 0
    for at, (kind, text) in enumerate(rest):
        depth += (text in _OPENING) - (text in _CLOSING) if kind == "op" else 0
        if depth == 0:
            return at < len(rest) - 1
    return False


def _printed(rest: list[_Token]) -> str:
    parts = _parts(rest, ",")
    settings: list[str] = []
    if _spelt(parts[0]).strip().startswith(">>"):
        settings.append("file=" + _spelt(parts.pop(0)).strip().removeprefix(">>").strip())
    elif not _spelt(rest).strip():
        return "print()"
    if len(parts) > 1 and not _spelt(parts[-1]).strip():
        parts.pop()
        settings.insert(0, "end=' '")
    return "print(" + ", ".join([*(_spelt(part).strip() for part in parts), *settings]) + ")"


def _parts(tokens: list[_Token], separator: str) -> list[list[_Token]]:
    """Split at `separator` outside of brackets."""
    parts: list[list[_Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token[1] in _OPENING) - (token[1] in _CLOSING) if token[0] == "op" else 0
        if depth == 0 and token[0] != "string" and token[1] == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _spelt(tokens: list[_Token]) -> str:
    """Return the tokens with names, operators and literals as Python 3 spells them."""
    said: list[str] = []
    quoted = False
    before = ""
    for kind, text in _with_plain_lambdas(tokens):
        new = text
        if kind == "name":
            new = _METHODS.get(text, text) if before == "." else _NAMES.get(text, text)
        elif kind == "number":
            new = _number(text)
        elif kind == "string" and text[:2].lower() == "ur":
            new = text[1:]
        elif text == "<>":
            new = "!="
        elif text == "`":
            new, quoted = (")" if quoted else "repr("), not quoted
        said.append(new)
        before = text if kind != "skip" else before
    return "".join(said)


def _with_plain_lambdas(tokens: list[_Token]) -> list[_Token]:
    """Return the tokens with ``lambda (a, b): x`` as ``lambda pair: (lambda a, b: x)(*pair)``."""
    for at, (_, text) in enumerate(tokens):
        opening = next((place for place in range(at + 1, len(tokens)) if tokens[place][0] != "skip"), at)
        if text != "lambda" or tokens[opening][1] != "(":
            continue
        closing = _end(tokens, opening + 1, set())
        if ("op", ",") not in tokens[opening:closing]:
            # A single name in brackets is that name.
            return [*tokens[:opening], *_with_plain_lambdas([*tokens[opening + 1 : closing], *tokens[closing + 1 :]])]
        colon = next((place for place in range(closing + 1, len(tokens)) if tokens[place][0] != "skip"), closing)
        if tokens[colon][1] != ":":
            continue
        end = _end(tokens, colon + 1, {","})
        inner = [("name", "lambda"), ("skip", " "), *tokens[opening + 1 : closing], *tokens[colon:end]]
        outer: list[_Token] = [("name", "lambda"), ("skip", " "), ("name", "pair"), ("op", ":"), ("skip", " ")]
        call: list[_Token] = [("op", ")"), ("op", "("), ("op", "*"), ("name", "pair"), ("op", ")")]
        plain = [*tokens[:at], *outer, ("op", "("), *inner, *call]
        # What is within it, and after it, may have more of them.
        return [*plain[: at + len(outer) + 1], *_with_plain_lambdas([*plain[at + len(outer) + 1 :], *tokens[end:]])]
    return tokens


def _end(tokens: list[_Token], begin: int, stops: set[str]) -> int:
    """Return the place of the bracket that closes what `begin` is in, or of the first of `stops` before it."""
    depth = 0
    for at in range(begin, len(tokens)):
        text = tokens[at][1] if tokens[at][0] == "op" else ""
        if depth == 0 and (text in _CLOSING or text in stops):
            return at
        depth += (text in _OPENING) - (text in _CLOSING)
    return len(tokens)


def _number(text: str) -> str:
    text = text.rstrip("lL")
    return f"0o{text[1:]}" if re.fullmatch(r"0[0-7]+", text) and int(text) else text
