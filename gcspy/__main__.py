"""`python -m gcspy` is the `gcspy` command."""

from __future__ import annotations

import sys

from gcspy.cli import main

if __name__ == "__main__":
    sys.exit(main())
