"""The exit codes of the `gcspy` command, and the one place that turns errors into them."""

from __future__ import annotations

from enum import IntEnum

from gcspy_protocol.errors import (
    CommandError,
    DriverError,
    GCspyError,
    LinkError,
    NotPermitted,
    ProtocolError,
    RecordingError,
    TargetGone,
    TraceError,
    Unsupported,
    VersionMismatch,
)

__all__ = ["ExitCode", "exit_code_of"]


class ExitCode(IntEnum):
    """Exit codes of `gcspy`; documented in its help and in README.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    TARGET_GONE = 3
    NOT_PERMITTED = 4
    UNSUPPORTED = 5
    NO_CONNECTION = 6
    PROTOCOL = 7
    MISSING_PART = 8
    RECORDING = 9
    DRIVER = 10
    INTERRUPTED = 130


EXIT_CODE_HELP = """\b
Exit codes:
  0    done
  1    another error
  2    invalid command line
  3    the target does not exist or ended too early
  4    permission denied by the system
  5    the runtime or its version is not supported
  6    no connection: no server there, connection refused, or address in use
  7    the peer uses another protocol version or violated the protocol
  8    a required component is not installed: Qt, a system library or a package
  9    the recording or trace is invalid, damaged or cannot be written
  10   a driver is faulty: report it to the authors of its package
  130  interrupted with Ctrl-C; the target keeps running
"""

_CODES: tuple[tuple[type[GCspyError], ExitCode], ...] = (
    (VersionMismatch, ExitCode.PROTOCOL),
    (ProtocolError, ExitCode.PROTOCOL),
    (LinkError, ExitCode.NO_CONNECTION),
    (TargetGone, ExitCode.TARGET_GONE),
    (NotPermitted, ExitCode.NOT_PERMITTED),
    (Unsupported, ExitCode.UNSUPPORTED),
    (DriverError, ExitCode.DRIVER),
    (RecordingError, ExitCode.RECORDING),
    (TraceError, ExitCode.RECORDING),
)


def exit_code_of(error: GCspyError) -> int:
    """Return the exit code for a kind of error."""
    if isinstance(error, CommandError):
        return error.exit_code
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return ExitCode.FAILED
