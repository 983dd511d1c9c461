"""Begin a program whose allocation sites are counted: ``python begin.py SETTINGS KIND PROGRAM ARGUMENTS…``; what `gcspy count` starts.

SETTINGS is a JSON object: ``result`` (file that is written at the end), ``plan``, ``sites``, ``include``, ``replan``, ``graph``. KIND is ``script``, ``module`` or ``code``.
The program's environment is as if Python had been started with it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Load what counts, leave no trace of it on the path, and become the program."""
    folder = str(Path(__file__).resolve().parent.parent)
    sys.path.insert(0, folder)
    from gcspy_counting.program_start import become

    sys.path.remove(folder)
    become(json.loads(arguments[0]), arguments[1], arguments[2], arguments[3:])


if __name__ == "__main__":
    main(sys.argv[1:])
