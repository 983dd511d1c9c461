r"""An import job that keeps its failures for a report, with their tracebacks, and so all that the failed calls had in their variables.

Cause: exceptions are kept; their tracebacks keep frames, and these the rows that were being read
Holder: __main__\.FAILURES
"""

from __future__ import annotations

from benchmarks.leaks.pace import growing

FAILURES: list[ValueError] = []


def import_rows(batch: int) -> int:
    """Read a batch; the last row of each is broken."""
    rows = [f"{batch};{number};{number * batch}" for number in range(60)] + [f"{batch};broken"]
    total = 0
    for row in rows:
        _, _, amount = row.split(";")
        total += int(amount)
    return total


def main() -> None:
    """Import batches, and keep what went wrong."""
    for batch in growing(check_every=20):
        try:
            import_rows(batch)
        except ValueError as error:
            FAILURES.append(error)


if __name__ == "__main__":
    main()
