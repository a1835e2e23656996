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
r"""
The ``$(...)`` of launch files: parsed once, performed in a context.

Rules of ROS 2 launch: arguments are separated by exactly one space; one in quotes may hold spaces
and further substitutions; a backslash takes the next character literally; outside of ``$(...)``
quotes mean themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
import shlex
import subprocess
import sys

from biped_com_ros.core.errors import ConfigurationError, UnknownNameError
from biped_com_ros.core.model.resources import find_package
from biped_com_ros.launch_runner.context import Context
from biped_com_ros.launch_runner.errors import LaunchFileError
from biped_com_ros.launch_runner.expression import evaluate_expression


@dataclass(frozen=True)
class Call:
    """``$(name argument ...)``."""

    name: str
    arguments: tuple[tuple[Piece, ...], ...]


Piece = str | Call

LONGEST = 32 * 1024 ** 2
"""Characters of the longest text: that of a robot's description."""
DEEPEST = 50
"""Levels of ``$(...)`` within each other."""


def parse(text: str, where: str) -> tuple[Piece, ...]:
    """
    Split text into literal strings and calls.

    Raises
    ------
    LaunchFileError
        If a substitution is unknown, malformed, or has the wrong number of arguments.

    """
    parser = _Parser(text, where)
    return parser.pieces(stop='', quoted=False)


def perform(text: str, context: Context, where: str) -> str:
    """Parse text and replace every substitution by its value."""
    return perform_pieces(parse(text, where), context, where)


def perform_pieces(pieces: tuple[Piece, ...], context: Context, where: str) -> str:
    """
    Join literal strings and the values of calls.

    Raises
    ------
    LaunchFileError
        If a substitution cannot be performed, or the text gets too long: arguments that repeat
        each other grow exponentially.

    """
    texts, length = [], 0
    for piece in pieces:
        texts.append(piece if isinstance(piece, str) else _perform_call(piece, context, where))
        length += len(texts[-1])
        if length > LONGEST:
            raise LaunchFileError(where, f'a text gets longer than {LONGEST} characters by '
                                  'substitutions')
    return ''.join(texts)


def is_true(text: str, where: str, what: str) -> bool:
    """Truth of a condition, by launch's rule: true, 1, false or 0 in any case."""
    word = text.strip().lower()
    if word not in ('true', '1', 'false', '0'):
        raise LaunchFileError(where, f"{what} is '{text}' (valid: true, 1, false, 0)")
    return word in ('true', '1')


def _perform_call(call: Call, context: Context, where: str) -> str:
    arguments = [perform_pieces(argument, context, where) for argument in call.arguments]
    try:
        return _FUNCTIONS[call.name][1](context, where, *arguments)
    except LaunchFileError:
        raise
    except ConfigurationError as error:
        raise LaunchFileError(where, str(error)) from error


class _Parser:
    """Recursive descent over one attribute value."""

    def __init__(self, text: str, where: str) -> None:
        self._text, self._where, self._at, self._depth = text, where, 0, 0

    def pieces(self, stop: str, quoted: bool) -> tuple[Piece, ...]:
        """Read up to one of the characters in `stop`, or to the end if there is none."""
        found: list[Piece] = []
        literal = ''
        while self._at < len(self._text) and self._peek() not in stop:
            if self._text.startswith('$(', self._at):
                if literal:
                    found.append(literal)
                literal = ''
                found.append(self._call(quoted))
            else:
                literal += self._character(inside=bool(stop) and not quoted)
        if literal:
            found.append(literal)
        return tuple(found)

    def _peek(self) -> str:
        return self._text[self._at]

    def _character(self, inside: bool) -> str:
        character = self._peek()
        if inside and character in '\'"(':
            raise self._error(f'unexpected {character}; put the whole argument in quotes')
        if character == '\\' and self._at + 1 < len(self._text):
            self._at += 1
            character = self._peek()
        self._at += 1
        return character

    def _call(self, quoted: bool) -> Call:
        start = self._at
        self._at += 2
        self._depth += 1
        if self._depth > DEEPEST:
            raise LaunchFileError(self._where, f'more than {DEEPEST} substitutions are nested')
        name = ''
        while self._at < len(self._text) and self._peek() not in ' )':
            name += self._peek()
            self._at += 1
        arguments = []
        while self._at < len(self._text) and self._peek() == ' ':
            self._at += 1
            arguments.append(self._argument(quoted))
        if self._at >= len(self._text) or self._peek() != ')':
            raise self._error('the closing parenthesis is missing', start)
        self._at += 1
        self._depth -= 1
        return self._checked(Call(name, tuple(arguments)), start)

    def _argument(self, quoted: bool) -> tuple[Piece, ...]:
        quote = self._text[self._at:self._at + 1]
        if quote in ('"', "'") and not quoted:
            self._at += 1
            pieces = self.pieces(stop=quote, quoted=True)
            if self._at >= len(self._text):
                raise self._error(f'the closing {quote} is missing')
            self._at += 1
            return pieces
        pieces = self.pieces(stop=' )', quoted=False)
        if not pieces:
            raise self._error('an argument is empty; separate arguments by exactly one space')
        return pieces

    def _checked(self, call: Call, start: int) -> Call:
        if call.name not in _FUNCTIONS:
            raise self._error(str(UnknownNameError('substitution', call.name, _FUNCTIONS)), start)
        counts, _ = _FUNCTIONS[call.name]
        if len(call.arguments) not in counts:
            raise self._error(f'$({call.name}) takes {" or ".join(map(str, counts))} argument(s), '
                              f'{len(call.arguments)} given', start)
        return call

    def _error(self, message: str, at: int | None = None) -> LaunchFileError:
        column = (self._at if at is None else at) + 1
        return LaunchFileError(self._where, f'in "{self._text}", character {column}: {message}')


def _var(context: Context, _where: str, name: str) -> str:
    if name not in context.configurations:
        raise UnknownNameError('launch variable', name, context.configurations)
    return context.configurations[name]


def _env(context: Context, _where: str, name: str, default: str | None = None) -> str:
    value = context.environment.get(name, default)
    if value is None:
        raise ConfigurationError(
            f"environment variable '{name}' is not set; set it or give a default: "
            f'$(env {name} DEFAULT)')
    return value


#: Left out where a command is named and not run.
_QUOTES = str.maketrans('', '', '\'"\\')


def _command(context: Context, _where: str, command: str, on_stderr: str = 'fail') -> str:
    valid = ('fail', 'ignore', 'warn')
    if on_stderr not in valid:
        raise UnknownNameError('treatment of stderr', on_stderr, valid, where='$(command)')
    if not context.runs_commands:
        # It may become part of an expression, hence no quotes and backslashes.
        return f'$(command {command.translate(_QUOTES)})'
    try:
        result = subprocess.run(shlex.split(command), env=context.environment, text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"command '{command}' cannot be run: {error}") from error
    if result.returncode != 0 or (result.stderr and on_stderr == 'fail'):
        raise ConfigurationError(f"command '{command}' failed with exit code {result.returncode}: "
                                 f'{result.stderr.strip() or "no error message"}')
    if result.stderr and on_stderr == 'warn':
        print(f"command '{command}': {result.stderr.strip()}", file=sys.stderr)
    return result.stdout


def _file(where: str) -> Path:
    return Path(where.rpartition(':')[0])


def _truth(text: str) -> bool:
    if text.strip().lower() not in ('true', 'false'):
        raise ConfigurationError(f"'{text}' is not a truth value (valid: true, false)")
    return text.strip().lower() == 'true'


def _logical(combine: Callable[[list[bool]], bool]) -> Callable[..., str]:
    def function(_context: Context, _where: str, *values: str) -> str:
        return 'true' if combine([_truth(value) for value in values]) else 'false'
    return function


#: Numbers of arguments, and function of (context, where, *arguments).
_FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[..., str]]] = {
    'var': ((1,), _var), 'env': ((1, 2), _env),
    'dirname': ((0,), lambda _context, where: str(_file(where).parent)),
    'filename': ((0,), lambda _context, where: str(_file(where))),
    'not': ((1,), _logical(lambda truths: not truths[0])),
    'and': ((2,), _logical(all)), 'or': ((2,), _logical(any)),
    'eval': ((1,), lambda _context, _where, text: evaluate_expression(text)),
    'find-pkg-share': ((1,), lambda context, _where, package: str(
        find_package(package, context.environment))),
    'command': ((1, 2), _command),
}
