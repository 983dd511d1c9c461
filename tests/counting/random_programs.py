"""Random Python programs that end: loops, exceptions, generators, coroutines, patterns, contexts, nested functions.

Runs in the target's interpreter, too, so it is the standard library alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

__all__ = ["random_head", "random_program"]

_HEAD = """
class Context:
    def __init__(self, swallows):
        self.swallows = swallows
    def __enter__(self):
        return [self]
    def __exit__(self, kind, error, trace):
        return self.swallows and kind is not None
    async def __aenter__(self):
        return {self: 1}
    async def __aexit__(self, kind, error, trace):
        return self.swallows and kind is not None
class Fuel(BaseException):
    pass
fuel = [%d]
def burn():
    fuel[0] -= 1
    if fuel[0] < 0:
        raise Fuel
def maybe(value):
    burn()
    if value %% 5 == 0:
        raise ValueError(value)
    if value %% 7 == 0:
        raise KeyError(value)
    return value
class Wait:
    def __await__(self):
        got = yield self
        return got
async def aiter_of(values):
    for value in values:
        await Wait()
        yield value
def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as end:
        return end.value
"""


class _Writer:
    def __init__(self, random_: random.Random, lone_loops: bool, depth: int) -> None:
        self.random = random_
        self.lone_loops = lone_loops
        self.depth = depth
        self.lines: list[str] = []
        self.names = count()
        self.functions: list[tuple[str, str]] = []

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def expression(self, depth: int = 0) -> str:
        pick = self.random.choice
        if depth > 2:
            return pick(["x", "y", "1", "[]", "(x, y)"])
        inner = self.expression
        choices: list[Callable[[], str]] = [
            lambda: f"[{inner(depth + 1)}, y]",
            lambda: f"({inner(depth + 1)}, x)",
            lambda: f"{{x: {inner(depth + 1)}}}",
            lambda: f"{{x, {pick('12345')}}}",
            lambda: "f'{x}-{y!r}'",
            lambda: f"maybe(x + {pick('0123456')})",
            lambda: f"[k for k in range({pick('123')}) if k != y]",
            lambda: f"sum((k, j) != k for k in range({pick('23')}) for j in [x])",
            lambda: f"{{k: [k] for k in range({pick('0123')})}}",
            lambda: f"(lambda *a, **k: [a, k])(x, *[y], z={inner(depth + 1)})",
            lambda: f"({inner(depth + 1)} if x % {pick('23')} else {inner(depth + 1)})",
            lambda: f"({inner(depth + 1)} and {inner(depth + 1)} or [x])",
            lambda: f"(x < {pick('3579')} < y + {pick('1379')})",
            lambda: "str(x)[1:3]",
            lambda: "-x * y",
            lambda: f"10 // (x % {pick('234')})",
        ]
        return self.random.choice(choices)()

    def block(self, depth: int, level: int, kind: str, loop: bool) -> None:
        if self.lone_loops and self.random.random() < 0.3:
            self.lone_loop(depth, kind)
            return
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, level, kind, loop)

    def statement(self, depth: int, level: int, kind: str, loop: bool) -> None:
        choices = [self.assignment] * 4 + [self.call, self.leave, self.unpack]
        if level < self.depth:
            choices += [self.branch, self.for_loop, self.while_loop, self.attempt, self.attempt]
            choices += [self.context, self.match, self.inner_function]
        if kind in ("generator", "async generator", "coroutine"):
            choices += [self.suspend] * 2
        self.random.choice(choices)(depth, level, kind, loop)

    def assignment(self, depth: int, level: int, kind: str, loop: bool) -> None:
        name = self.random.choice(["z", "w"])
        self.say(depth, f"{name} = {self.expression()}")
        if self.random.random() < 0.3:
            self.say(depth, f"{self.random.choice('xy')} += 1")

    def unpack(self, depth: int, level: int, kind: str, loop: bool) -> None:
        self.say(depth, f"z, *w = [x, y, {self.expression(1)}]")

    def call(self, depth: int, level: int, kind: str, loop: bool) -> None:
        if not self.functions:
            self.say(depth, "burn()")
            return
        name, of = self.random.choice(self.functions)
        if of == "function":
            self.say(depth, f"z = {name}(x, y)")
        elif of == "generator":
            limit = self.random.choice(["", f"[z for z, _ in zip({name}(y, x), range(2))]"])
            self.say(depth, limit or f"z = list({name}(x, y))")
        elif of == "coroutine":
            self.say(
                depth,
                f"z = drive({name}(x, y))" if kind != "coroutine" else f"z = await {name}(x, y)",
            )
        elif kind in ("coroutine", "async generator"):
            self.say(depth, f"async for z in {name}(x, y):")
            self.say(depth + 1, "burn(); w = [z]")
            if self.random.random() < 0.4:
                self.say(depth + 1, "break")
        else:
            self.say(depth, "probe()")

    def leave(self, depth: int, level: int, kind: str, loop: bool) -> None:
        choices = ["raise ValueError([x])", "raise KeyError(x)"]
        if kind in ("function", "coroutine"):
            choices.append("return [x, y]")
        elif kind != "module":
            choices.append("return")
        if loop:
            choices += ["break", "continue"] * 2
        self.say(depth, f"if x % {self.random.choice('2345')} == {self.random.choice('01')}:")
        self.say(depth + 1, self.random.choice(choices))

    def branch(self, depth: int, level: int, kind: str, loop: bool) -> None:
        self.say(depth, f"if {self.expression(1)}:")
        self.block(depth + 1, level + 1, kind, loop)
        if self.random.random() < 0.4:
            self.say(depth, f"elif x % {self.random.choice('23')}:")
            self.block(depth + 1, level + 1, kind, loop)
        if self.random.random() < 0.5:
            self.say(depth, "else:")
            self.block(depth + 1, level + 1, kind, loop)

    def for_loop(self, depth: int, level: int, kind: str, loop: bool) -> None:
        name = self.random.choice("xyk")
        source = self.random.choice(
            ["range(4)", "[1, 2]", "(x, y)", "iter([x])", "(i for i in [3, 4])"]
        )
        if kind in ("coroutine", "async generator") and self.random.random() < 0.4:
            self.say(depth, f"async for {name} in aiter_of({source}):")
        else:
            self.say(depth, f"for {name} in {source}:")
        self.say(depth + 1, "burn()")
        self.block(depth + 1, level + 1, kind, True)
        if self.random.random() < 0.3:
            self.say(depth, "else:")
            self.block(depth + 1, level + 1, kind, loop)

    def while_loop(self, depth: int, level: int, kind: str, loop: bool) -> None:
        name = f"n{next(self.names)}"
        self.say(depth, f"{name} = {self.random.randint(0, 4)}")
        self.say(
            depth,
            self.random.choice([f"while {name} > 0:", f"while True if {name} > 0 else False:"]),
        )
        self.say(depth + 1, f"{name} -= 1; burn()")
        self.block(depth + 1, level + 1, kind, True)

    def lone_loop(self, depth: int, kind: str) -> None:
        """Write a loop that is all of a block, so that its end is next to the end of what surrounds it: often nothing stands between two ends."""
        pick = self.random.choice
        waits = kind in ("coroutine", "async generator")
        for _ in range(pick([1, 1, 2, 3])):
            source = pick(
                ["range(3)", "[x, y]", "(x, y)", "()", "iter([x])", "(i for i in [3, 4])"]
            )
            way = pick(["for", "for", "for", "async", "while", "true"])
            if way == "async" and waits:
                self.say(depth, f"async for k in aiter_of({source}):")
            elif way == "while":
                name = f"n{next(self.names)}"
                self.say(depth, f"{name} = {pick('0123')}")
                self.say(depth, f"while {name}:")
                self.say(depth + 1, f"{name} -= 1")
            elif way == "true":
                self.say(depth, "while True:")
                self.say(depth + 1, f"burn(); z = {self.expression(2)}")
                self.say(depth + 1, "if z: break")
                self.say(depth + 1, "break")
            else:
                self.say(depth, f"for k in {source}:")
            depth += 1
        ends = ["pass", "[k]", "continue", "break", "z = [k]", "if k == x: break", "if x: continue"]
        ends += [
            "maybe(x)",
            "if y: z = {k}",
            "raise ValueError" if depth > 3 else "pass",
            "z = (k, x)",
        ]
        if kind == "generator":
            ends.append("yield [k]")
        self.say(depth, pick(ends))
        if self.random.random() < 0.2:
            self.say(depth - 1, "else:")
            self.say(depth, pick(["pass", "z = [x]"]))

    def attempt(self, depth: int, level: int, kind: str, loop: bool) -> None:
        self.say(depth, "try:")
        self.block(depth + 1, level + 1, kind, loop)
        handlers = self.random.sample(
            ["ValueError", "(KeyError, TypeError)", "ZeroDivisionError"], self.random.randint(0, 2)
        )
        for handler in handlers:
            self.say(depth, f"except {handler}{self.random.choice(['', ' as error'])}:")
            self.block(depth + 1, level + 1, kind, loop)
            if self.random.random() < 0.2:
                self.say(depth + 1, "raise")
        if handlers and self.random.random() < 0.3:
            self.say(depth, "else:")
            self.block(depth + 1, level + 1, kind, loop)
        if not handlers or self.random.random() < 0.4:
            self.say(depth, "finally:")
            # No `continue` or `return` that would swallow the end of the fuel.
            self.say(depth + 1, f"z = {self.expression(1)}")
            self.say(depth + 1, "w = [z]")

    def context(self, depth: int, level: int, kind: str, loop: bool) -> None:
        word = (
            "async with"
            if kind in ("coroutine", "async generator") and self.random.random() < 0.5
            else "with"
        )
        self.say(depth, f"{word} Context(False) as c:")
        self.block(depth + 1, level + 1, kind, loop)

    def match(self, depth: int, level: int, kind: str, loop: bool) -> None:
        self.say(depth, f"match {self.expression(1)}:")
        for pattern in self.random.sample(
            ["[a, *b]", "{'k': v}", "(1 | 2) as q", "int(n)", "[a, [b]] if a"], 2
        ):
            self.say(depth + 1, f"case {pattern}:")
            self.block(depth + 2, level + 1, kind, loop)
        self.say(depth + 1, "case _:")
        self.block(depth + 2, level + 1, kind, loop)

    def suspend(self, depth: int, level: int, kind: str, loop: bool) -> None:
        if kind == "coroutine":
            self.say(depth, "z = [await Wait(), x]")
            return
        generators = [name for name, of in self.functions if of == "generator"]
        if kind == "generator" and generators and self.random.random() < 0.3:
            self.say(depth, f"z = yield from {self.random.choice(generators)}(y, x)")
        else:
            self.say(depth, f"z = [x, (yield {self.expression(1)})]")

    def inner_function(self, depth: int, level: int, kind: str, loop: bool) -> None:
        name = f"g{next(self.names)}"
        self.say(depth, f"def {name}(a=[x], *, b={{y}}):")
        self.say(depth + 1, f"return [a, b, x, {self.expression(1).replace('maybe', 'abs')}]")
        self.say(depth, f"w = {name}()")

    def function(self, number: int) -> None:
        kind = self.random.choice(
            ["function", "function", "generator", "coroutine", "async generator"]
        )
        name = f"f{number}"
        word = "async def" if kind in ("coroutine", "async generator") else "def"
        self.say(0, f"{word} {name}(x, y):")
        self.say(1, "burn(); z = w = k = c = None")
        if kind == "async generator":
            self.say(1, "await Wait()")
        self.block(1, 0, kind, False)
        if kind in ("generator", "async generator"):
            self.say(1, "yield [x]")
        self.functions.append((name, kind))


def random_head(fuel: int = 150) -> str:
    """Return the source of what all programs call: contexts, awaitables, and a fuel that ends them."""
    return _HEAD % fuel


def random_program(seed: int, small: bool = False) -> str:
    """Return the source of a program that calls `probe()` now and then; equal seeds give equal programs. It stands behind `random_head`.

    Programs of odd seeds have loops that are all of a block.

    Args:
        seed: Which.
        small: One function instead of up to five, and less deep.
    """
    writer = _Writer(random.Random(seed), seed % 2 == 1, depth=2 if small else 4)
    for number in range(1 if small else writer.random.randint(1, 5)):
        writer.function(number)
    writer.say(0, "kept = []")
    for name, kind in writer.functions:
        writer.say(0, "for x in range(6):")
        writer.say(1, "try:")
        if kind == "function":
            writer.say(2, f"{name}(x, x + 1)")
        elif kind == "generator":
            writer.say(2, f"g = {name}(x, x + 2); kept.append(g)")
            writer.say(2, "next(g); g.send([x])")
            writer.say(2, "if x % 2: g.throw(ValueError([x]))")
            writer.say(2, "if x % 3: g.close()")
        elif kind == "coroutine":
            writer.say(2, f"c = {name}(x, x + 1); kept.append(c)")
            writer.say(2, "c.send(None)")
            writer.say(2, "drive(c) if x % 2 else c.throw(KeyError(x))")
        else:
            writer.say(2, f"async def all_{name}():")
            writer.say(3, f"async for z in {name}(x, 1): burn()")
            writer.say(2, f"drive(all_{name}())")
        writer.say(
            1,
            "except (ArithmeticError, LookupError, ValueError, TypeError, StopIteration, RuntimeError, AttributeError, UnboundLocalError, StopAsyncIteration) as e:",
        )
        writer.say(2, "kept.append(e.args)")
        writer.say(1, "except Fuel: fuel[0] = 60")
        writer.say(1, "except GeneratorExit: pass")
        writer.say(1, "probe()")
    return "\n".join(writer.lines) + "\n"
