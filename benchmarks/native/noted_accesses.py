"""Time of native programs that note their accesses (`gcspy_accesses.c`), over that of the same programs as they are.

    python -m benchmarks noted_accesses [--lua FOLDER] [--pairs N]

Programs: binary trees and a table of texts in C, from here; with the sources of Lua (a clone of
https://github.com/lua/lua) also its interpreter, with scripts that make trees, concatenate texts and
sort. Each is compiled by gcc -O2 as it is, with hooks and with checks in place, and run in turns; processor
time, medians. Checks in place call a hook at the first access of a period, which is measured alone,
on 64 MiB.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness.figures import tell

__all__ = ["main"]

_RUNTIME = Path(__file__).parents[2] / "drivers/native/include/gcspy_accesses.c"
_WAYS = {
    "hooks": (("-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0"), ()),
    "in place": (
        (
            "-fsanitize=kernel-address",
            "-fasan-shadow-offset=0x200000000000",
            *("--param", "asan-stack=0", "--param", "asan-globals=0"),
            *("--param", "asan-instrument-allocas=0"),
            *("--param", "asan-instrumentation-with-call-threshold=1000000"),
        ),
        ("-DGCSPY_ACCESSES_IN_PLACE",),
    ),
}
"""Flags of the program, and of the runtime."""

_FIRST = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { BYTES = 64 << 20, UNIT = 16 };
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(void)
{
    volatile char *memory = malloc(BYTES);
    double took[3];
    for (int round = 0; round < 3; round++) {
        if (round) /* as GCspy does at the beginning of a period; the first round touches the pages */
            memset((void *)(0x200000000000 + ((unsigned long)memory >> 3)), round == 1 ? 0 : 0x80, BYTES / 8);
        double begun = now();
        for (long at = 0; at < BYTES; at += UNIT)
            memory[at] = 1;
        took[round] = now() - begun;
    }
    printf("%.1f\n", (took[2] - took[1]) / (BYTES / UNIT));
    return 0;
}
"""


_TREES = r"""
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *left, *right; long value; };
static struct node *make(int depth)
{
    struct node *made = malloc(sizeof *made);
    made->value = depth;
    made->left = depth ? make(depth - 1) : NULL;
    made->right = depth ? make(depth - 1) : NULL;
    return made;
}
static long sum(const struct node *node) { return node ? node->value + sum(node->left) + sum(node->right) : 0; }
static void drop(struct node *node)
{
    if (!node)
        return;
    drop(node->left);
    drop(node->right);
    free(node);
}
int main(void)
{
    long total = 0;
    struct node *kept = make(18);
    for (int round = 0; round < 60; round++) {
        struct node *other = make(14);
        for (int again = 0; again < 3; again++)
            total += sum(other);
        total += sum(kept);
        drop(other);
    }
    printf("%ld\n", total);
    return 0;
}
"""

_TEXTS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { SLOTS = 1 << 16 };
static struct entry { struct entry *next; unsigned hash; char text[24]; } *slots[SLOTS];
static unsigned hash_of(const char *text)
{
    unsigned hash = 5381;
    while (*text)
        hash = hash * 33 + (unsigned char)*text++;
    return hash;
}
int main(void)
{
    unsigned long found = 0;
    for (int round = 0; round < 40; round++)
        for (int number = 0; number < 50000; number++) {
            char text[24];
            int length = 0;
            for (int rest = number; rest || !length; rest /= 10)
                text[length++] = (char)('0' + rest % 10);
            text[length] = 0;
            unsigned hash = hash_of(text);
            struct entry *one = slots[hash % SLOTS];
            while (one && (one->hash != hash || strcmp(one->text, text)))
                one = one->next;
            if (one) {
                found++;
                continue;
            }
            one = malloc(sizeof *one);
            one->hash = hash;
            strcpy(one->text, text);
            one->next = slots[hash % SLOTS];
            slots[hash % SLOTS] = one;
        }
    printf("%lu\n", found);
    return 0;
}
"""

_SCRIPTS = {
    "trees": """
local function make(d) if d == 0 then return {} end return {make(d - 1), make(d - 1)} end
local function check(t) if t[1] then return 1 + check(t[1]) + check(t[2]) end return 1 end
local kept, total = make(14), 0
for i = 1, 60 do total = total + check(make(11)) end
print(total + check(kept))
""",
    "texts": """
local parts, n = {}, 0
for i = 1, 300000 do parts[i % 1000 + 1] = tostring(i) .. "x"; n = n + #parts[i % 1000 + 1] end
for i = 1, 200 do n = n + #table.concat(parts, ",") end
print(n)
""",
    "sort": """
local t, x = {}, 42
for i = 1, 150000 do x = (x * 1103515245 + 12345) % 2147483648; t[i] = x end
table.sort(t)
print(t[1], t[#t])
""",
}


def _build(folder: Path, name: str, sources: list[Path], more: list[str]) -> list[Path]:
    """Build a program as it is, and in each way in which it notes its accesses."""
    plain = folder / name
    subprocess.run(["gcc", "-O2", *map(str, sources), "-o", str(plain), *more], check=True)
    built = [plain]
    for number, (hooks, choice) in enumerate(_WAYS.values()):
        parts = folder / f"{name}-parts-{number}"
        parts.mkdir()
        for source in sources:
            made = parts / f"{source.stem}.o"
            compile_only = [one for one in more if not one.startswith("-l")]
            command = ["gcc", "-O2", *hooks, *compile_only, "-c", str(source), "-o", str(made)]
            subprocess.run(command, check=True)
        runtime = parts / "gcspy_accesses.o"
        subprocess.run(["gcc", "-O2", *choice, "-c", str(_RUNTIME), "-o", str(runtime)], check=True)
        built.append(folder / f"{name}-{number}")
        objects = [str(one) for one in sorted(parts.iterdir())]
        subprocess.run(["gcc", *objects, "-o", str(built[-1]), *more], check=True)
    return built


def _seconds(command: list[str]) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said


def _measure(name: str, commands: list[list[str]], pairs: int) -> list[float]:
    """Measure a program in each way, in turns; return the ratios to the first."""
    times: list[list[float]] = [[] for _ in commands]
    for pair in range(pairs):
        said = set()
        for which in range(len(commands))[:: 1 if pair % 2 == 0 else -1]:
            secs, text = _seconds(commands[which])
            times[which].append(secs)
            said.add(text)
        if len(said) > 1:
            raise SystemExit(f"{name}: the programs give different results")
    medians = [statistics.median(each) for each in times]
    ratios = [each / medians[0] for each in medians[1:]]
    cells = [f"{medians[0]:.3f}"]
    for secs, ratio in zip(medians[1:], ratios, strict=True):
        cells += [f"{secs:.3f}", f"{ratio:.2f}"]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return ratios


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lua", type=Path, metavar="FOLDER", help="sources of Lua")
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    print("| program | as it is, s | hooks, s | ratio | in place, s | ratio |")
    print("|---|--:|--:|--:|--:|--:|")
    ratios = []
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as name:
        folder = Path(name)
        for title, text in (("trees in C", _TREES), ("texts in C", _TEXTS)):
            source = folder / f"{title.partition(' ')[0]}.c"
            source.write_text(text)
            built = _build(folder, source.stem, [source], [])
            ratios.append(_measure(title, [[str(one)] for one in built], options.pairs))
        if options.lua is not None:
            every = sorted(options.lua.glob("*.c"))
            sources = [one for one in every if one.stem not in ("onelua", "ltests")]
            built = _build(folder, "lua", sources, ["-DLUA_USE_LINUX", "-Wl,-E", "-lm"])
            for title, text in _SCRIPTS.items():
                script = folder / f"{title}.lua"
                script.write_text(text)
                commands = [[str(each), str(script)] for each in built]
                ratios.append(_measure(f"Lua, {title}", commands, options.pairs))
        source = folder / "first.c"
        source.write_text(_FIRST)
        first = _seconds([str(_build(folder, "first", [source], [])[-1])])[1].strip()
    worst = [max(each) for each in zip(*ratios, strict=True)]
    print(
        f"\nfirst access of a period to 16 bytes, in place: {first} ns more; load {os.getloadavg()[0]:.1f}"
    )
    tell("native programs that note their accesses by hooks: time, the worst", worst[0], "", "2.5")
    tell("native programs that note their accesses in place: time, the worst", worst[1], "", "2.5")
    return 0


if __name__ == "__main__":
    sys.exit(main())
