# Copyright 2026 biped_com_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""
The expressions of ``$(eval ...)``: a whitelisted part of Python, evaluated without ``eval()``.

Arithmetic, comparisons, ``and``, ``or``, ``not``, ``a if condition else b`` of strings, numbers
and lists, with the results of ``ros2 launch``. Anything else is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
import operator
from typing import Any

from biped_com_ros.core.errors import ConfigurationError

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items, ast.NotIn: lambda item, items: item not in items}
_VALID = ('numbers, quoted strings, lists, True, False, and, or, not, == != < <= > >=, in, '
          '+ - * / // %, parentheses, "a if condition else b"')


LONGEST = 4096
"""Characters of the longest expression; results are hardly longer: no text is multiplied."""


def evaluate_expression(text: str) -> str:
    """
    Evaluate an expression and return the result as text, as ``ros2 launch`` does.

    Raises
    ------
    ConfigurationError
        If it is not an expression, uses something not whitelisted, or cannot be evaluated.

    """
    if len(text) > LONGEST:
        raise ConfigurationError(f"expression '{text[:40]}...' has {len(text)} characters; the "
                                 f'longest that is evaluated has {LONGEST}')
    try:
        tree = ast.parse(text.strip(), mode='eval')
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        # Python's parser runs out of its own stack with too many operators in a row.
        raise ConfigurationError(f"'{text}' is not an expression (valid: {_VALID})") from error
    try:
        return str(_value(tree.body))
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ConfigurationError(f"expression '{text}' cannot be evaluated: {error}") from error


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(bool() | int() | float() | str()):
            return node.value
        case ast.List() | ast.Tuple():
            return [_value(item) for item in node.elts]
        case ast.UnaryOp(ast.Not()):
            return not _value(node.operand)
        case ast.UnaryOp(ast.USub()):
            return -_value(node.operand)
        case ast.BinOp() if type(node.op) in _BINARY:
            return _operate(node.op, _value(node.left), _value(node.right))
        case ast.BoolOp():
            return _boolean(node)
        case ast.Compare():
            return _compare(node)
        case ast.IfExp():
            return _value(node.body if _value(node.test) else node.orelse)
    source = ast.unparse(node)
    hint = f"; quote it ('{source}') if a string is meant" if isinstance(node, ast.Name) else ''
    raise ConfigurationError(f"'{source}' is not allowed in $(eval){hint} (valid: {_VALID})")


def _operate(operation: ast.operator, left: Any, right: Any) -> Any:
    """Return the result of a binary operation; only numbers are multiplied, not texts."""
    if isinstance(operation, (ast.Mult, ast.Mod)) and not (
            isinstance(left, (int, float)) and isinstance(right, (int, float))):
        raise TypeError('* and % need numbers')
    return _BINARY[type(operation)](left, right)


def _boolean(node: ast.BoolOp) -> Any:
    stops_at = isinstance(node.op, ast.Or)
    result = None
    for part in node.values:
        result = _value(part)
        if bool(result) == stops_at:
            break
    return result


def _compare(node: ast.Compare) -> bool:
    left = _value(node.left)
    for symbol, comparator in zip(node.ops, node.comparators, strict=True):
        right = _value(comparator)
        if type(symbol) not in _COMPARE:
            raise ConfigurationError(
                f"'{ast.unparse(node)}' is not allowed in $(eval) (valid: {_VALID})")
        if not _COMPARE[type(symbol)](left, right):
            return False
        left = right
    return True
