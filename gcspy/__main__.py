"""The `gcspy` command and `python -m gcspy`: Ctrl-C ends it without a traceback, also while it loads and while it exits."""

from __future__ import annotations

import signal

_INTERRUPTED = 130
"""`ExitCode.INTERRUPTED`, which is not loaded yet."""


def _leave(_number: int, _frame: object) -> None:
    """End at once: no command has begun, so there is nothing to clean up."""
    import os

    os._exit(_INTERRUPTED)


def run() -> int:
    """Load the command line, and run it.

    Returns:
        The exit code; `gcspy.exit_codes` lists them.
    """
    import atexit

    # A shell that starts a command in the background may have Ctrl-C ignored: that stays.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _leave)
        # Runs last, when all threads have ended: the exit code is decided by then.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    from gcspy.cli import main

    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    import sys

    sys.exit(run())
