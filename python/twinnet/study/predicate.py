"""The small language of statements: linear comparisons of measured quantities. It is parsed, never executed.

    check    := claim ("and" claim)*
    claim    := (side (("<" | ">" | "<=" | ">=") side)+ | side "=" side "within" margin) every?
    every    := "in" "every" FACTOR ("," FACTOR)*
    margin   := NUMBER "%" | side                a share of the right side, or an amount
    side     := term (("+" | "-") term)*
    term     := factor ("*" factor)*            at most one of the factors is an aggregate
    factor   := NUMBER (UNIT | "%")? | parameter | aggregate | "-" factor
    aggregate:= FUNCTION "(" measured ("," option)* ")"
              | "share" "(" measured ("<" | ">" | "<=" | ">=") side ("," option)* ")"
    measured := measurement ("[" key "=" word ("," key "=" word)* "]")?
    option   := "during" "=" "[" side "," side "]" | "after" "=" (side | "warm-up") | factor "=" level ("|" level)*

Functions are `mean`, `std` (standard deviation), `median` and percentiles such as `p99`, and the `share` that keeps a
bound, of what is measured within one run, of which the mean over runs is compared; `min` and `max` over everything:
packets, flows, runs and the levels that are left out; and `normality`, the greatest p-value of the Anderson-Darling
test in any run. A claim `in every` factor is one under each of its levels. Only like is added and compared: a time with
a time, a rate with a rate. A bare number or a percentage fits where the measurement has no unit in a file (a share, a
count, dB); zero fits everywhere.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from twinnet.errors import did_you_mean
from twinnet.study.dimensions import ANY, PLAIN, combined, described, example, unit_of_kind
from twinnet.study.quantity import Quantity, parse_quantity
from twinnet.study.value_functions import FUNCTIONS, MEAN, NORMALITY, Bound, BoundOperator, ValueFunction, percentile_of
from twinnet.study.window import WARM_UP, Window

__all__ = [
    "SHARE_UNIT",
    "Aggregate",
    "Check",
    "Comparison",
    "Names",
    "Side",
    "Term",
    "aggregate_of",
    "is_under",
    "parse_check",
    "parse_side",
    "unit_of_side",
]

Operator = Literal["<", ">", "<=", ">=", "="]
SHARE_UNIT = "1"
FILTERS = ("protocol", "flow", "port", "from")
LONGEST_CHECK = 2000
MOST_COMPARISONS = 400

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d+)?)(?:\s*(?:[A-Za-zµ]+(?:/s)?))?)|(?P<word>[A-Za-z_][A-Za-z0-9_.-]*)"
    r"|(?P<sign><=|>=|[<>()\[\],=*+%|]|-))"
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A measured quantity of one run: a function of a measurement, of the selected flows, in a window of time.

    Attributes
    ----------
    function
        One of `twinnet.study.value_functions.FUNCTIONS`, or a percentile.
    during_s
        The window in seconds from the start of traffic; `None` for that of the measurement, or else the whole run.
    levels
        The level of each named factor, or the levels of a group as `a|b`; groups and factors left out are averaged
        over.
    bound
        Of a share: the operator, and the bound in the unit of the measurement.
    """

    function: str
    measurement: str
    filters: tuple[tuple[str, str], ...]
    during_s: Window | None
    levels: tuple[tuple[str, str], ...]
    bound: Bound | None = None

    @property
    def text(self) -> str:
        """Function and measurement as a check has them: `p99(delay)`."""
        return f"{self.function}({self.measurement})"

    def unit(self, unit: str) -> str:
        """The unit of its value, where the measurement has `unit`."""
        return SHARE_UNIT if self.bound is not None or self.function == NORMALITY else unit


@dataclass(frozen=True, slots=True)
class Term:
    """A number, or a number times a measured quantity."""

    factor: float
    aggregate: Aggregate | None = None


Side = tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Left side, operator, right side; for `=` the difference that counts as none; the levels that it is `under`, where
    it stands for one of a claim `in every` factor."""

    left: Side
    operator: Operator
    right: Side
    text: str
    margin: Side = ()
    under: str = ""


Check = tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a check may use: parameters, measurements with the unit of their values, factors with levels, and
    of factors of which not all levels are run, those that are."""

    parameters: Mapping[str, Quantity]
    measurements: Mapping[str, str]
    factors: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    levels_run: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])


def is_under(levels: Mapping[str, str], named: Mapping[str, str]) -> bool:
    """True if a run with `levels` is among those that `named` names, by the level or the group of each factor."""
    return all(levels.get(name) in group.split("|") for name, group in named.items())


def aggregate_of(
    measurement: str,
    filters: tuple[tuple[str, str], ...] = (),
    during_s: Window | None = None,
    function: ValueFunction = MEAN,
) -> Aggregate:
    """The `function` of a measurement under any levels."""
    return Aggregate(function.name, measurement, filters, during_s, (), function.bound)


def parse_check(text: str, names: Names) -> Check:
    """Read `text` as a check.

    Raises
    ------
    ValueError
        With the token, its column, and what was expected.
    """
    parser = _Parser(text, names)
    check = parser.check()
    parser.end()
    return check


def parse_side(text: str, names: Names, unit: str | None = None) -> Side:
    """Read `text` as one side of a comparison, which measures what `unit` does; raises as :func:`parse_check`."""
    parser = _Parser(text, names)
    side = parser.measured_side()
    parser.end()
    if unit is not None:
        parser.need_like(side, _Measured((), unit, 0, "what is wanted here"))
    return side.terms


def unit_of_side(text: str, names: Names) -> str:
    """The unit of what `text`, one side of a comparison, measures; raises as :func:`parse_check`."""
    return _Parser(text, names).measured_side().unit


def _under(claim: Sequence[Comparison], levels: Mapping[str, str]) -> list[Comparison]:
    """The comparisons of `claim`, of runs under `levels` alone; sides that two of them share stay one."""
    made: dict[int, Side] = {}

    def limited(term: Term) -> Term:
        if term.aggregate is None:
            return term
        named = tuple(sorted([*term.aggregate.levels, *levels.items()]))
        return replace(term, aggregate=replace(term.aggregate, levels=named))

    def side(given: Side) -> Side:
        return made.setdefault(id(given), tuple(map(limited, given)))

    named = ", ".join(f"{name}={level}" for name, level in levels.items())
    return [
        replace(one, left=side(one.left), right=side(one.right), margin=side(one.margin), under=named) for one in claim
    ]


@dataclass(frozen=True, slots=True)
class _Measured:
    """A part of a check with the unit of its value, the place where it begins and its text."""

    terms: Side
    unit: str
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _Parser:
    """Recursive descent over the tokens; its depth is bounded because a window holds no measured quantity."""

    def __init__(self, text: str, names: Names) -> None:
        if len(text) > LONGEST_CHECK:
            raise ValueError(f"a check of {len(text)} characters; at most {LONGEST_CHECK} are read")
        self.text, self.names, self.place = text, names, 0
        self.in_bound = ""
        self.in_margin = False
        self.tokens: list[_Token] = []
        position = 0
        while text[position:].strip():
            found = _TOKEN.match(text, position)
            if found is None or found.lastgroup is None:
                position += len(text[position:]) - len(text[position:].lstrip())
                raise ValueError(f"column {position + 1} of {text!r}: {text[position]!r} has no meaning in a check")
            kind = found.lastgroup
            number = found.group(kind).split()
            # "3 and" is a number and a word, not a quantity with the unit "and".
            if kind == "number" and len(number) == 2 and number[1] in ("and", "within", "in"):
                end = found.start(kind) + len(number[0])
                self.tokens.append(_Token(kind, number[0], found.start(kind), end))
                position = end
                continue
            self.tokens.append(_Token(kind, found.group(kind), found.start(kind), found.end()))
            position = found.end()

    def check(self) -> Check:
        comparisons = self._claim()
        while self._take("and"):
            comparisons += self._claim()
        return tuple(comparisons)

    def _claim(self) -> list[Comparison]:
        """A chain, or one under each combination of the levels of the factors that it is `in every` one of."""
        begin = self._position()
        claim = self._chain()
        if not self._take("in"):
            return claim
        if not self._take("every"):
            raise self._expected("'every' and a factor")
        factors: list[str] = []
        while not factors or self._take(","):
            factor = self._word("a factor")
            if factor.text not in self.names.factors:
                raise self._unknown("factor", factor, self.names.factors)
            if factor.text in factors:
                raise ValueError(f"column {factor.start + 1} of {self.text!r}: {factor.text} is named twice")
            factors.append(factor.text)
        blocks = list(itertools.product(*({**self.names.factors, **self.names.levels_run}[name] for name in factors)))
        if len(blocks) * len(claim) > MOST_COMPARISONS:
            said = f"{len(blocks)} combinations of levels of {', '.join(factors)}; at most {MOST_COMPARISONS}"
            raise ValueError(f"column {begin + 1} of {self.text!r}: {said}")
        for one in claim:
            terms = [*one.left, *one.right, *one.margin]
            aggregates = [term.aggregate for term in terms if term.aggregate is not None]
            if not aggregates:
                raise ValueError(f"column {begin + 1} of {self.text!r}: nothing in it is measured in any {factors[0]}")
            for name in factors:
                level = next((dict(of.levels)[name] for of in aggregates if name in dict(of.levels)), None)
                if level is not None:
                    said = f"it speaks of {name}={level} and of every {name}: leave one of them out"
                    raise ValueError(f"column {begin + 1} of {self.text!r}: {said}")
        return [one for block in blocks for one in _under(claim, dict(zip(factors, block, strict=True)))]

    def _chain(self) -> list[Comparison]:
        begin = self._position()
        left = self.measured_side()
        if self._take("="):
            return [self._equivalence(begin, left)]
        chain: list[Comparison] = []
        while (operator := self._peek()) in ("<", ">", "<=", ">="):
            self.place += 1
            middle = self._position()
            right = self.measured_side()
            self.need_like(right, left)
            shown = self.text[begin : self._end_of_last()].strip()
            chain.append(Comparison(left.terms, operator, right.terms, shown))
            left, begin = right, middle
        if not chain:
            raise self._expected("a comparison: <, >, <= or >=, or = with 'within'")
        return chain

    def _equivalence(self, begin: int, left: _Measured) -> Comparison:
        """`= side within margin`: two quantities that differ by no more than a share or an amount."""
        right = self.measured_side()
        self.need_like(right, left)
        if not self._take("within"):
            raise self._expected("'within' and how far they may be apart, such as 'within 5 %'")
        start = self._position()
        self.in_margin = True
        margin = self.measured_side()
        self.in_margin = False
        if self._take("%"):
            self._check_share(margin, right, start)
            share = margin.terms[0].factor / 100
            if all(term.aggregate is None for term in right.terms) and sum(term.factor for term in right.terms) < 0:
                share = -share
            terms = tuple(Term(share * term.factor, term.aggregate) for term in right.terms)
        else:
            self.need_like(margin, right)
            terms = margin.terms
        if any(term.aggregate is None for term in terms) and sum(term.factor for term in terms) <= 0:
            raise ValueError(f"column {start + 1} of {self.text!r}: nothing is allowed between them; give more than 0")
        return Comparison(left.terms, "=", right.terms, self.text[begin : self._end_of_last()].strip(), terms)

    def _check_share(self, margin: _Measured, right: _Measured, start: int) -> None:
        plain = margin.unit == PLAIN and len(margin.terms) == 1 and margin.terms[0].aggregate is None
        if not plain or not 0 < margin.terms[0].factor < 100:
            raise ValueError(f"column {start + 1} of {self.text!r}: a share is a number above 0 % and below 100 %")
        if all(term.aggregate is None for term in right.terms) and right.unit == ANY:
            raise ValueError(f"column {start + 1} of {self.text!r}: a share of zero is zero; give an amount")

    def measured_side(self) -> _Measured:
        """A sum of terms that all measure the same."""
        start = self._position()
        first = self._term()
        terms, unit = first.terms, first.unit
        while (sign := self._peek()) in ("+", "-"):
            self.place += 1
            before = self._from(start, terms, unit)
            more = self._term()
            unit = self.need_like(more, before)
            terms += more.terms if sign == "+" else tuple(Term(-one.factor, one.aggregate) for one in more.terms)
        return self._from(start, terms, unit)

    def _from(self, start: int, terms: Side, unit: str) -> _Measured:
        return _Measured(terms, unit, start, self.text[start : self._end_of_last()].strip())

    def need_like(self, given: _Measured, other: _Measured) -> str:
        """The unit of `given` and `other` together; raises where they do not measure the same."""
        unit = combined(other.unit, given.unit)
        if unit is not None:
            return unit
        bare, partner = (given, other) if given.unit == PLAIN else (other, given)
        if bare.unit == PLAIN:
            said = f"{bare.text} has no unit, and {partner.text} is {described(partner.unit)}"
            said += f"; write for example '{example(partner.unit)}'"
            raise ValueError(f"column {bare.start + 1} of {self.text!r}: {said}")
        said = f"{given.text} is {described(given.unit)}, and {other.text} is {described(other.unit)}"
        said += "; add and compare only quantities of one kind"
        raise ValueError(f"column {given.start + 1} of {self.text!r}: {said}")

    def _term(self) -> _Measured:
        start = self._position()
        product = self._factor()
        while self._take("*"):
            other = self._factor()
            (first,), (second,) = product.terms, other.terms
            if first.aggregate is not None and second.aggregate is not None:
                said = "two measured quantities cannot be multiplied"
                raise ValueError(f"column {other.start + 1} of {self.text!r}: {said}")
            units = [one for one in (product.unit, other.unit) if one not in (PLAIN, ANY)]
            if len(units) > 1:
                said = f"{product.text} is {described(product.unit)} and {other.text} {described(other.unit)}"
                said += "; one factor of a product has a unit, the other is a bare number"
                raise ValueError(f"column {other.start + 1} of {self.text!r}: {said}")
            term = Term(first.factor * second.factor, first.aggregate or second.aggregate)
            product = self._from(start, (term,), units[0] if units else PLAIN)
        return product

    def _factor(self) -> _Measured:
        start = self._position()
        sign = 1.0
        while self._take("-"):
            sign = -sign
        token = self._next("a number, a parameter or a measured quantity")
        if token.kind == "number":
            try:
                given = parse_quantity(token.text)
                if given.kind == "number" and not self.in_margin and self._take("%"):
                    return self._from(start, (Term(sign * given.number / 100),), PLAIN)
                return self._quantity(start, sign, given)
            except ValueError as error:
                raise ValueError(f"column {token.start + 1} of {self.text!r}: {error}") from None
        if token.kind == "word" and self._peek() == "(":
            if self.in_bound:
                raise ValueError(f"column {token.start + 1} of {self.text!r}: {self.in_bound} not measured")
            aggregate = self._aggregate(token)
            unit = aggregate.unit(self.names.measurements[aggregate.measurement])
            return self._from(start, (Term(sign, aggregate),), unit)
        if token.kind == "word":
            value = self.names.parameters.get(token.text)
            if value is None:
                if token.text in self.names.measurements:
                    raise ValueError(
                        f"column {token.start + 1} of {self.text!r}: {token.text} is a measurement with many values; "
                        f"write for example mean({token.text})"
                    )
                raise self._unknown("parameter", token, self.names.parameters)
            try:
                return self._quantity(start, sign, value)
            except ValueError as error:
                raise ValueError(f"column {token.start + 1} of {self.text!r}: {error}") from None
        self.place -= 1
        raise self._expected("a number, a parameter or a measured quantity")

    def _quantity(self, start: int, sign: float, given: Quantity) -> _Measured:
        number = sign * given.number
        zero = given.kind == "number" and number == 0
        return self._from(start, (Term(number),), ANY if zero else unit_of_kind(given.kind))

    def _aggregate(self, function: _Token) -> Aggregate:
        try:
            known = function.text in FUNCTIONS or percentile_of(function.text) is not None
        except ValueError as error:
            raise ValueError(f"column {function.start + 1} of {self.text!r}: {error}") from None
        if not known:
            raise self._unknown("function", function, [*FUNCTIONS, "p50", "p90", "p99"])
        self._need("(")
        measurement = self._word("a measurement")
        if measurement.text not in self.names.measurements:
            raise self._unknown("measurement", measurement, self.names.measurements)
        filters: list[tuple[str, str]] = []
        if self._take("["):
            filters.append(self._filter())
            while self._take(","):
                filters.append(self._filter())
            self._need("]")
        bound = self._bound(measurement.text) if function.text == "share" else None
        during: Window | None = None
        levels: list[tuple[str, str]] = []
        while self._take(","):
            option = self._word("during, after or a factor")
            self._need("=")
            if option.text in ("during", "after") and during is not None:
                raise ValueError(f"column {option.start + 1} of {self.text!r}: this is a second window; give one")
            if option.text == "during":
                during = self._window()
            elif option.text == "after":
                during = WARM_UP if self._take(WARM_UP) else (self._moment(), math.inf)
            elif option.text in self.names.factors:
                levels.append((option.text, self._levels(option.text)))
            else:
                raise self._unknown("option", option, ["during", "after", *self.names.factors])
        self._need(")")
        return Aggregate(function.text, measurement.text, tuple(sorted(filters)), during, tuple(sorted(levels)), bound)

    def _levels(self, factor: str) -> str:
        """A level of `factor`, or a group of them with bars between."""
        group: list[str] = []
        while not group or self._take("|"):
            level = self._next("a level")
            if level.text not in self.names.factors[factor]:
                raise self._unknown(f"level of {factor}", level, self.names.factors[factor])
            group.append(level.text)
        return "|".join(dict.fromkeys(group))

    def _bound(self, measurement: str) -> Bound:
        """The operator and the bound of a share."""
        operators: dict[str, BoundOperator] = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}
        operator = operators.get(self._peek() or "")
        if operator is None:
            raise self._expected("a bound, such as 'share(delay < 20 ms)'")
        self.place += 1
        self.in_bound = "the bound of a share is"
        side = self.measured_side()
        self.in_bound = ""
        self.need_like(side, _Measured((), self.names.measurements[measurement], 0, measurement))
        return operator, sum(term.factor for term in side.terms)

    def _filter(self) -> tuple[str, str]:
        key = self._word("a key to select by")
        if key.text not in FILTERS:
            raise self._unknown("key", key, FILTERS)
        self._need("=")
        value = self._word("what to select").text
        if key.text == "port" and (towards := self._peek()) in ("to", "towards"):
            self.place += 1
            value = f"{value} {towards} {self._word('the far end').text}"
        return key.text, value

    def _window(self) -> tuple[float, float]:
        self._need("[")
        column = self._position() + 1
        begin = self._moment()
        self._need(",")
        end = self._moment()
        self._need("]")
        if not 0 <= begin < end:
            raise ValueError(f"column {column} of {self.text!r}: from {begin:g} s to {end:g} s is no window of time")
        return begin, end

    def _moment(self) -> float:
        """Seconds from the start of traffic."""
        self.in_bound = "a window's bounds are"
        side = self.measured_side()
        self.in_bound = ""
        self.need_like(side, _Measured((), "s", 0, "a window's bound"))
        return sum(term.factor for term in side.terms)

    def end(self) -> None:
        if self.place < len(self.tokens):
            raise self._expected("the end")

    def _peek(self) -> str | None:
        return self.tokens[self.place].text if self.place < len(self.tokens) else None

    def _position(self) -> int:
        return self.tokens[self.place].start if self.place < len(self.tokens) else len(self.text)

    def _end_of_last(self) -> int:
        return self.tokens[self.place - 1].end if self.place else 0

    def _take(self, text: str) -> bool:
        if self._peek() != text:
            return False
        self.place += 1
        return True

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise self._expected(repr(text))

    def _next(self, what: str) -> _Token:
        if self.place >= len(self.tokens):
            raise self._expected(what)
        self.place += 1
        return self.tokens[self.place - 1]

    def _word(self, what: str) -> _Token:
        token = self._next(what)
        if token.kind != "word":
            self.place -= 1
            raise self._expected(what)
        return token

    def _expected(self, what: str) -> ValueError:
        found = self._peek()
        shown = "the end" if found is None else repr(found)
        return ValueError(f"column {self._position() + 1} of {self.text!r}: expected {what}, found {shown}")

    def _unknown(self, what: str, token: _Token, known: Collection[str]) -> ValueError:
        remedy = did_you_mean(token.text, known)
        return ValueError(f"column {token.start + 1} of {self.text!r}: unknown {what} {token.text!r}; {remedy}")
