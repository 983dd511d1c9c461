"""`python -m tests.fuzz`: all decoders in turn, each for its share of the time; what was found is written out, and new inputs on demand."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from hashlib import sha256
from pathlib import Path

from tests.fuzz.engine import Broken, Fuzzer, load, shortest
from tests.fuzz.targets import CORPUS, DECODERS


def main() -> int:
    """Fuzz; returns 1 where an input broke a rule."""
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    asked.add_argument(
        "--time", type=float, default=60, help="seconds of processor time for each decoder"
    )
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--decoder", choices=[*DECODERS, "all"], default="all")
    asked.add_argument(
        "--keep",
        action="store_true",
        help="write the shortest inputs that reach all into the corpus",
    )
    asked.add_argument("--found", type=Path, help="folder for inputs that broke a rule")
    chosen = asked.parse_args()
    broken = 0
    for name in DECODERS if chosen.decoder == "all" else [chosen.decoder]:
        broken += _fuzz(name, chosen.time, chosen.seed, keep=chosen.keep, found=chosen.found)
    return 1 if broken else 0


def _fuzz(name: str, seconds: float, seed: int, *, keep: bool, found: Path | None) -> int:
    decoder, folder = DECODERS[name], CORPUS / name
    fuzzer = Fuzzer(decoder.run, [*decoder.seeds(), *load(folder)], seed)
    broken: dict[str, bytes] = {}
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        try:
            fuzzer.step()
        except Broken as error:
            what = str(error).partition(" (an input")[0][:60]
            if what not in broken:
                broken[what] = error.data
                print(f"{name}: {error}", flush=True)
                if found is not None:
                    found.mkdir(parents=True, exist_ok=True)
                    (found / f"{name}-{sha256(error.data).hexdigest()[:12]}").write_bytes(
                        error.data
                    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{name}: {fuzzer.executions:,} executions, {fuzzer.seconds:.1f} s of processor, {len(fuzzer.edges):,} edges, "
        f"{len(fuzzer.kept):,} inputs kept, {len(broken)} rules broken, at most {peak:,} MB in the process so far",
        flush=True,
    )
    if keep:
        _write(folder, shortest(decoder.run, fuzzer.kept))
    return len(broken)


def _write(folder: Path, inputs: list[bytes]) -> None:
    """Keep those inputs, of at most 4 KiB each and 40 of them, beside the existing ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for data in [one for one in inputs if len(one) <= 4096][:40]:
        (folder / sha256(data).hexdigest()[:12]).write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
