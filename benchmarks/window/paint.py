"""From gathered array to finished paint, in separate processes, with sampled pixels checked against the values.

Budgets: 1,000,000 tiles, 60 events/s, 1 % changed: p99 at most 8 ms, at most 5 % of a core for the
server and 8 % for the window; 8,192 tiles: 8 % and 1.3 ms an event for the window; 10,000,000
tiles: 60 frames/s with 1 % changed, 30 with 10 %. The other cases have no budget. The first second,
in which the window is made, is not measured. The case of the budget is run again without keeping
events for looking back: the difference is the cost of keeping them.
"""

from __future__ import annotations

import argparse

from benchmarks.harness.figures import tell
from benchmarks.harness.processes import child

__all__ = ["measure"]

_BUDGETS = {
    (1_000_000, "1% changed"): ("<= 8", "<= 5", "<= 8"),
    (8_192, "1% changed"): ("", "", "<= 8"),
}
"""p99 in ms, and shares of a core in percent of server and window, by tiles and change."""

_AN_EVENT = {(1_000_000, "10% changed"): "<= 4", (8_192, "1% changed"): "<= 1.3"}
"""Processor time of the window, in ms."""

_FRAMES = {"1% changed": ">= 60", "10% changed": ">= 30"}
"""Frames a second of 10,000,000 tiles."""

_CASES = (
    # tiles, share changed, Hz, resized at every other event, kept for looking back
    (8_192, 0.01, 60, False, True),
    (8_192, 1.0, 60, False, True),
    (100_000, 0.01, 60, False, True),
    (100_000, 0.10, 60, False, True),
    (1_000_000, 0.01, 60, False, True),
    (1_000_000, 0.01, 60, False, False),
    (1_000_000, 0.10, 60, False, True),
    (1_000_000, 1.0, 60, False, True),
    (1_000_000, 0.01, 60, True, True),
    (10_000_000, 0.01, 30, False, True),
    (10_000_000, 0.10, 30, False, True),
    (10_000_000, 1.0, 30, False, True),
    (10_000_000, 0.01, 30, True, True),
)


def measure(
    tiles: int, changed: float, hz: float, resize: bool, kept: bool = True, *, seconds: float
) -> dict[str, float]:
    """Run one case; the window's figures, with the server's as ``server_cpu`` and ``finish_ms``."""
    arguments = [
        f"--tiles={tiles}",
        f"--changed={changed}",
        f"--hz={hz}",
        f"--events={int(hz * (seconds + 1))}",
        "--wait=2.5",
    ]
    if resize:
        arguments.append("--resize")
    with child("benchmarks.targets.synthetic", *arguments) as server:
        address = server.line()["address"]
        window_arguments = [f"--skip={int(hz)}", *([] if kept else ["--unkept"])]
        with child(
            "benchmarks.window.measured_window",
            address,
            *window_arguments,
            QT_QPA_PLATFORM="offscreen",
        ) as window:
            served = server.line()
            seen = window.line()
    if seen["crc"] != served["crc"]:
        raise RuntimeError(f"{tiles} tiles: the window's values are not the server's")
    return {
        **seen,
        "server_cpu": served["cpu_share"],
        "finish_ms": served["finish_ms"],
        "sent": served["events"] - int(hz),
    }


def _tell(tiles: int, what: str, hz: float, r: dict[str, float]) -> None:
    """Report the figures with a budget, and the same figures of the other cases."""
    case = f"{tiles:,} tiles, {what}, {hz:g} Hz"
    if tiles >= 10_000_000:
        frames = _FRAMES.get(what, "")
        tell(f"{case}: frames", r["paints_per_sec"], "/s", frames)
    else:
        p99, server, window = _BUDGETS.get((tiles, what), ("", "", ""))
        tell(f"{case}: array to paint p99", r["p99_ms"], "ms", p99)
        tell(f"{case}: share of a core, server", 100 * r["server_cpu"], "%", server)
        tell(f"{case}: share of a core, window", 100 * r["cpu_share"], "%", window)
        tell(f"{case}: window, an event", r["cpu_ms"], "ms", _AN_EVENT.get((tiles, what), ""))
    if r["pixels_wrong"]:
        tell(f"{case}: wrong pixels", r["pixels_wrong"], "", "0")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--tiles", type=int, default=0, help="only the cases with so many tiles")
    options = parser.parse_args()
    print(
        "     tiles changed   Hz | latency ms p50 /  p99 /  max | paints/s events | server cpu, finish ms | window cpu, an event | wrong pixels"
    )
    for tiles, changed, hz, resize, kept in _CASES:
        if options.tiles and tiles != options.tiles:
            continue
        r = measure(tiles, changed, hz, resize, kept, seconds=options.seconds)
        print(
            f"{tiles:10,} {'resize' if resize else f'{changed:.0%}':>7} {hz:4} | "
            f"{r['p50_ms']:14.2f} /{r['p99_ms']:6.1f} /{r['max_ms']:6.1f} | {r['paints_per_sec']:8.1f} "
            f"{r['events']:.0f}/{r['sent']:.0f}".ljust(75)
            + f"| {r['server_cpu']:8.1%} {r['finish_ms']:8.2f} | {r['cpu_share']:8.1%} {r['cpu_ms']:6.2f} ms   | "
            f"{r['pixels_wrong']:.0f} of {r['pixels_checked']:.0f}"
            + ("" if kept else "   nothing kept"),
            flush=True,
        )
        _tell(tiles, "resized" if resize else f"{changed:.0%} changed", hz, r)


if __name__ == "__main__":
    main()
