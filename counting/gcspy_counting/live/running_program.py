"""Counters in a program that runs already: its functions found and given counters bit by bit, and given back."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import CodeType, FunctionType

from gcspy_counting.code_replacement import functions, replace_code
from gcspy_counting.import_hook import ImportHook
from gcspy_counting.live.hot_code import hot_code
from gcspy_counting.program import CountedProgram

__all__ = ["RunningProgram"]

_SLICE_SECS = 0.005
_SHARE = 0.2
"""Maximum share of the program's time that instrumentation takes."""
_ROUNDS = 5
"""How often functions are searched that running calls made of code with counters, when it is given back."""
_REST_SECS = 0.2
_OPTIMIZED = 0x0001
"""`CO_OPTIMIZED`: code that is called, unlike that of modules and classes."""


class RunningProgram:
    """Gives counters to the functions of this process.

    Args:
        program: What instruments.
        hook: Which functions are meant.
        hot_secs: Only functions that run within so many seconds get counters, and modules that are imported later do not; 0: all.

    Attributes:
        found: Number of code objects that are to get counters, those nested in others not included.
        done: Number of those that have them.
        cold: Number of code objects that get none, since they were not seen to run.
    """

    def __init__(self, program: CountedProgram, hook: ImportHook, hot_secs: float = 0.0) -> None:
        self._program = program
        self._hook = hook
        self._hot_secs = hot_secs
        self.found = self.done = self.cold = 0

    def instrument(self, goes_on: Callable[[float], bool]) -> None:
        """Give counters to all functions that are there; calls that run now are not counted, nor what they go on with.

        Args:
            goes_on: Waits for some seconds, and says whether to go on.
        """
        hot = None
        if self._hot_secs:
            hot = hot_code(self._hot_secs, goes_on)
            if not goes_on(0.0):
                return
        else:
            self._hook.follow_imports()
        wanted = [each for each in functions() if self._hook.wants_function(each)]
        codes = {id(each.__code__): each.__code__ for each in wanted}
        if hot is not None:
            # A module that runs is a function, too, in which all others are nested.
            codes = {ident: code for ident, code in codes.items() if code.co_flags & _OPTIMIZED}
        nested: set[int] = set()
        for each in codes.values():
            _note_nested(each, nested)
        tops = sorted(
            (each for ident, each in codes.items() if ident not in nested),
            key=lambda code: (code.co_filename, code.co_firstlineno),
        )
        if hot is not None:
            all_tops = tops
            # What is nested gets its counters with what it is nested in: that makes more of it.
            tops = [
                top for top in all_tops if not hot.keys().isdisjoint((id(top), *_nested_in(top)))
            ]
            self.cold = len(all_tops) - len(tops)
        self.found = len(tops)
        by_code: dict[int, list[FunctionType]] = {}
        for function in wanted:
            by_code.setdefault(id(function.__code__), []).append(function)
        begin = time.thread_time()
        for top in tops:
            self._program.instrument(top)
            for ident in (id(top), *_nested_in(top)):
                for function in by_code.get(ident, ()):
                    new = self._program.code_of(ident)
                    if new is not None and id(function.__code__) == ident:
                        function.__code__ = new
            self.done += 1
            spent = time.thread_time() - begin
            if spent >= _SLICE_SECS:
                if not goes_on(spent / _SHARE - spent):
                    return
                begin = time.thread_time()

    def give_back(self) -> int:
        """Give all functions their own code back; return how many. Calls that run now keep their counters to the end."""
        self._hook.remove()
        originals = self._program.originals()
        number = replace_code(originals)
        for _ in range(_ROUNDS):
            time.sleep(_REST_SECS)
            more = replace_code(originals)
            number += more
            if not more:
                break
        return number


def _note_nested(code: CodeType, nested: set[int]) -> None:
    nested.update(_nested_in(code))


def _nested_in(code: CodeType) -> list[int]:
    """Return the `id` of all code objects in one."""
    found = []
    todo = [each for each in code.co_consts if isinstance(each, CodeType)]
    while todo:
        each = todo.pop()
        found.append(id(each))
        todo += [inner for inner in each.co_consts if isinstance(inner, CodeType)]
    return found
