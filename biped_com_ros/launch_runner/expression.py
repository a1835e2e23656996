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
The expressions of ``$(eval ...)``: a whitelisted part of Python, never Python's own eval.

What is here evaluates to what ``ros2 launch`` gets for it; everything else is refused.
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
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items, ast.NotIn: lambda item, items: item not in items}
_VALID = ('numbers, quoted strings, True, False, and, or, not, == != < <= > >=, in, + - * / // %, '
          'parentheses, lists, "a if condition else b"')


def evaluate_expression(text: str) -> str:
    """
    Evaluate an expression and return the result as text, as ``ros2 launch`` does.

    Raises
    ------
    ConfigurationError
        If it is not an expression, uses what is not whitelisted, or cannot be computed.

    """
    try:
        tree = ast.parse(text.strip(), mode='eval')
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"'{text}' is not an expression (valid: {_VALID})") from error
    try:
        return str(_value(tree.body))
    except (TypeError, ZeroDivisionError, OverflowError, ValueError) as error:
        raise ConfigurationError(f"expression '{text}' cannot be computed: {error}") from error


def _value(node: ast.expr) -> Any:
    for kinds, evaluate in _EVALUATORS.items():
        if isinstance(node, kinds):
            return evaluate(node)
    raise _not_allowed(node)


def _constant(node: Any) -> Any:
    if isinstance(node.value, (bool, int, float, str)):
        return node.value
    raise _not_allowed(node)


def _operation(table: dict[type, Any], node: ast.AST, of: ast.AST) -> Callable[..., Any]:
    if type(of) not in table:
        raise _not_allowed(node)
    function: Callable[..., Any] = table[type(of)]
    return function


def _binary(node: Any) -> Any:
    return _operation(_BINARY, node, node.op)(_value(node.left), _value(node.right))


def _unary(node: Any) -> Any:
    return _operation(_UNARY, node, node.op)(_value(node.operand))


def _boolean(node: Any) -> Any:
    stops_at = isinstance(node.op, ast.Or)
    result = None
    for part in node.values:
        result = _value(part)
        if bool(result) == stops_at:
            break
    return result


def _compare(node: Any) -> bool:
    left = _value(node.left)
    for symbol, comparator in zip(node.ops, node.comparators, strict=True):
        right = _value(comparator)
        if not _operation(_COMPARE, node, symbol)(left, right):
            return False
        left = right
    return True


_EVALUATORS: dict[Any, Callable[[Any], Any]] = {
    ast.Constant: _constant,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: lambda node: _value(node.body if _value(node.test) else node.orelse),
    (ast.List, ast.Tuple): lambda node: [_value(item) for item in node.elts]}


def _not_allowed(node: ast.AST) -> ConfigurationError:
    source = ast.unparse(node)
    hint = f"; quote it ('{source}') if a string is meant" if isinstance(node, ast.Name) else ''
    return ConfigurationError(f"'{source}' is not allowed in $(eval){hint} (valid: {_VALID})")
