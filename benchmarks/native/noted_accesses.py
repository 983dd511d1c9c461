"""Time of native programs that note their accesses (`gcspy_accesses.c`), over that of the same programs as they are.

    python -m benchmarks noted_accesses [--lua FOLDER] [--pairs N]

Programs: binary trees and a table of texts in C, from here; with the sources of Lua (a clone of
https://github.com/lua/lua) also its interpreter, with scripts that make trees, concatenate texts and
sort. Each is compiled by gcc -O2 twice, and run in turns; processor time, medians.
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
_HOOKS = ("-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0")

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


def _build(folder: Path, name: str, sources: list[Path], more: list[str]) -> tuple[Path, Path]:
    """Build a program as it is, and one that notes its accesses."""
    plain, noting = folder / name, folder / f"{name}-noting"
    subprocess.run(["gcc", "-O2", *map(str, sources), "-o", str(plain), *more], check=True)
    parts = folder / f"{name}-parts"
    parts.mkdir()
    for source in sources:
        made = parts / f"{source.stem}.o"
        compile_only = [one for one in more if not one.startswith("-l")]
        command = ["gcc", "-O2", *_HOOKS, *compile_only, "-c", str(source), "-o", str(made)]
        subprocess.run(command, check=True)
    runtime = parts / "gcspy_accesses.o"
    subprocess.run(["gcc", "-O2", "-c", str(_RUNTIME), "-o", str(runtime)], check=True)
    objects = [str(one) for one in sorted(parts.iterdir())]
    subprocess.run(["gcc", *objects, "-o", str(noting), *more], check=True)
    return plain, noting


def _seconds(command: list[str]) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said


def _measure(name: str, plain: list[str], noting: list[str], pairs: int) -> float:
    times: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        said = {}
        for which in (0, 1) if pair % 2 == 0 else (1, 0):
            secs, said[which] = _seconds((plain, noting)[which])
            times[which].append(secs)
        if said[0] != said[1]:
            raise SystemExit(f"{name}: the two programs give different results")
    one, other = map(statistics.median, times)
    print(f"| {name} | {one:.3f} | {other:.3f} | {other / one:.2f} |", flush=True)
    return other / one


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lua", type=Path, metavar="FOLDER", help="sources of Lua")
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    print("| program | as it is, s | noting accesses, s | ratio |\n|---|--:|--:|--:|")
    ratios = []
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as name:
        folder = Path(name)
        for title, text in (("trees in C", _TREES), ("texts in C", _TEXTS)):
            source = folder / f"{title.partition(' ')[0]}.c"
            source.write_text(text)
            plain, noting = _build(folder, source.stem, [source], [])
            ratios.append(_measure(title, [str(plain)], [str(noting)], options.pairs))
        if options.lua is not None:
            every = sorted(options.lua.glob("*.c"))
            sources = [one for one in every if one.stem not in ("onelua", "ltests")]
            plain, noting = _build(folder, "lua", sources, ["-DLUA_USE_LINUX", "-Wl,-E", "-lm"])
            for title, text in _SCRIPTS.items():
                script = folder / f"{title}.lua"
                script.write_text(text)
                one, other = ([str(each), str(script)] for each in (plain, noting))
                ratios.append(_measure(f"Lua, {title}", one, other, options.pairs))
    print(f"\nmedian {statistics.median(ratios):.2f}; load {os.getloadavg()[0]:.1f}")
    tell("native programs that note their accesses: time, the worst", max(ratios), "", "2.5")
    return 0


if __name__ == "__main__":
    sys.exit(main())
