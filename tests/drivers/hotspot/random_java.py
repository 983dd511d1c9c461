"""Random Java programs that end: loops, exceptions, `finally`, switches, constructors that throw, recursion, lambdas; run in three threads."""

from __future__ import annotations

import random

__all__ = ["random_java"]

_FRAME = """
import java.util.*;
public class %(name)s {
    static class Fuel extends Error { Fuel() { super(null, null, false, false); } }
    static final Fuel EMPTY = new Fuel();
    static class Part {
        Object held; int[] more;
        Part(Object held, int n) { this.held = held; if (n %% 7 == 3) throw new IllegalStateException(); this.more = new int[] {n}; }
    }
    static class Whole extends Part {
        StringBuilder text = new StringBuilder(); List<Object> parts = new ArrayList<>();
        Whole(int n) { super(n %% 2 == 0 ? new Object() : new Part(null, n), n); parts.add(new Object()); }
    }
    int fuel; Object kept; int n;
    %(name)s(int fuel, int n) { this.fuel = fuel; this.n = n; }
    void burn() { if (--fuel < 0) throw EMPTY; n = (n * 31 + 7) & 1023; }
    static void work(int from) {
        for (int i = from; i < from + 40; i++) {
            try { new %(name)s(3000, i).m0(0); } catch (RuntimeException | Fuel e) { }
            try { new %(name)s(3000, i).m1(0); } catch (RuntimeException | Fuel e) { }
            try { new %(name)s(3000, i).m2(0); } catch (RuntimeException | Fuel e) { }
        }
    }
    public static void main(String[] args) throws Exception {
        Thread[] all = new Thread[3];
        for (int i = 0; i < 3; i++) { int from = i * 40; all[i] = new Thread(() -> work(from)); all[i].start(); }
        for (Thread each : all) each.join();
    }
%(methods)s
}
"""
_METHODS = 5
_EXPRESSIONS = (
    "new Object()",
    "new StringBuilder()",
    "new ArrayList<Object>()",
    "new int[n % 5]",
    "new int[n % 5 - 1]",
    "new long[2][n % 3]",
    "new Object[] {new Object(), new HashMap<Object, Object>(), new char[1]}",
    "new Part(new Object(), n)",
    "new Whole(n)",
    "n % 2 == 0 ? new Object() : new String[n % 3]",
    "new AbstractMap.SimpleEntry<Object, Object>(new int[1], new Part(null, n))",
    "new Object[] {new int[8 / (n % 4)], new Object()}",
    "new Object[] {kept.hashCode() + n, new StringBuilder()}",
)


class _Writer:
    def __init__(self, chosen: random.Random) -> None:
        self._random = chosen
        self._lines: list[str] = []
        self._loops = 0

    def method(self, number: int) -> str:
        self._lines = [f"Object m{number}(int depth) {{", "burn();", "Object o = null;"]
        self._block(3)
        self._lines += ["return o;", "}"]
        return "\n".join(self._lines)

    def _block(self, depth: int) -> None:
        for _ in range(self._random.randint(1, 4)):
            self._statement(depth)

    def _condition(self) -> str:
        return f"n % {self._random.randint(2, 6)} == {self._random.randint(0, 3)}"

    def _statement(self, depth: int) -> None:
        kinds = ["make", "make", "make", "keep", "throw", "null", "call"]
        if depth:
            kinds += ["if", "loop", "try", "try", "switch", "lock", "lambda"]
        getattr(self, f"_{self._random.choice(kinds)}")(depth)

    def _make(self, _: int) -> None:
        self._lines.append(f"o = {self._random.choice(_EXPRESSIONS)};")

    def _keep(self, _: int) -> None:
        self._lines.append(f"kept = {self._random.choice(_EXPRESSIONS)}; burn();")

    def _throw(self, _: int) -> None:
        self._lines.append(f"if ({self._condition()}) throw new IllegalArgumentException();")

    def _null(self, _: int) -> None:
        self._lines.append(f"if ({self._condition()}) kept = null;")

    def _call(self, _: int) -> None:
        called = self._random.randrange(_METHODS)
        self._lines.append(f"if (depth < 3) o = m{called}(depth + 1);")

    def _inside(self, head: str, depth: int, end: str = "}") -> None:
        self._lines.append(head)
        self._block(depth - 1)
        self._lines.append(end)

    def _if(self, depth: int) -> None:
        self._inside(f"if ({self._condition()}) {{", depth, "} else {")
        self._block(depth - 1)
        self._lines.append("}")

    def _loop(self, depth: int) -> None:
        self._loops += 1
        name = f"i{self._loops}"
        times = self._random.randint(1, 5)
        self._inside(f"for (int {name} = 0; {name} < {times}; {name}++) {{ burn();", depth, "")
        leave = self._random.choice(("break", "continue", "return o"))
        self._lines.append(f"if ({self._condition()}) {leave};")
        self._block(depth - 1)
        self._lines.append("}")

    def _try(self, depth: int) -> None:
        caught = self._random.choice(("RuntimeException", "IllegalStateException"))
        self._inside("try {", depth, f"}} catch ({caught} e{len(self._lines)}) {{")
        self._block(depth - 1)
        if self._random.random() < 0.5:
            self._inside("} finally {", depth, "")
        self._lines.append("}")

    def _switch(self, depth: int) -> None:
        self._lines.append("switch (n & 3) {")
        for case in ("case 0", "case 1", "default"):
            self._inside(f"{case}: {{", depth)
            if self._random.random() < 0.5:
                self._lines.append("break;")
        self._lines.append("}")

    def _lock(self, depth: int) -> None:
        self._inside("synchronized (this) {", depth)

    def _lambda(self, _: int) -> None:
        name = f"f{len(self._lines)}"
        made = self._random.choice(_EXPRESSIONS)
        self._lines.append(
            f"java.util.function.Supplier<Object> {name} = () -> {made}; o = {name}.get();"
        )


def random_java(name: str, seed: int) -> str:
    """Return the source of a class; it makes the same objects each time that it runs."""
    writer = _Writer(random.Random(seed))
    methods = "\n".join(writer.method(number) for number in range(_METHODS))
    return _FRAME % {"name": name, "methods": methods}
