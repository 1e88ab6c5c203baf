"""Formulas: numbers that a check expects, computed from the number of flows.

    is: 4 * (n - 1) / n**2        n: the flows of the traffic entry that is checked,
                                  or all flows where a check has none
    at_most: 120/(n-1) Gbit       a rate has its unit after the formula

A formula has numbers, n, + - * / **, min, max and parentheses, and nothing else.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: lambda base, exponent: float(base) ** exponent,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max}
_LOOKS_LIKE_ONE = re.compile(r"(?=.*\bn\b)([0-9naimx.,+*/() -]*?)([kMGT]?bit)?")
_LONGEST = 200

_EXPECTED = ("is", "at_least", "at_most")
_WHOLE_NUMBERS = ("counter", "queue")
"""The checks whose expected numbers are whole."""


def expected_numbers(checks: Any, flows: Mapping[str, int]) -> Any:
    """The data of the `verify:` section, with a number in place of each formula.

    `flows`: the number of flows of each traffic entry.
    """
    if not isinstance(checks, list):
        return checks
    return [_in_check(check, flows) for check in checks]


def _in_check(check: Any, flows: Mapping[str, int]) -> Any:
    if not isinstance(check, dict):
        return check
    return {kind: _in_bounds(kind, bounds, flows) for kind, bounds in check.items()}


def _in_bounds(kind: str, bounds: Any, flows: Mapping[str, int]) -> Any:
    if not isinstance(bounds, dict):
        return bounds
    n = flows.get(str(bounds.get("traffic")), sum(flows.values()))
    return {
        key: _number_or_rate(kind, value, n) if key in _EXPECTED else value
        for key, value in bounds.items()
    }


def _number_or_rate(kind: str, value: object, n: int) -> object:
    """Works out a formula, and returns any other value unchanged."""
    formula = _LOOKS_LIKE_ONE.fullmatch(value) if isinstance(value, str) else None
    number = worked_out(formula[1], n) if formula else None
    if formula is None or number is None:
        return value
    if formula[2]:
        return f"{number:f}{formula[2]}"
    return round(number) if kind in _WHOLE_NUMBERS else number


def worked_out(formula: str, n: int) -> float | None:
    """The value of the formula; None: it is invalid or has no finite value."""
    if len(formula) > _LONGEST:
        return None
    try:
        number = _number(ast.parse(formula.strip(), mode="eval").body, n)
    except (SyntaxError, ArithmeticError, KeyError, TypeError, RecursionError):
        return None
    return float(number) if isinstance(number, int | float) and isfinite(number) else None


def _number(node: ast.expr, n: int) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id="n"):
            return n
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)](_number(left, n), _number(right, n))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _FUNCTIONS[name](*(_number(arg, n) for arg in args))
    raise TypeError
