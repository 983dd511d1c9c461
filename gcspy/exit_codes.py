"""The exit codes of the `gcspy` command, and the one place that turns errors into them."""

from __future__ import annotations

from enum import IntEnum

from gcspy_protocol.errors import (
    CommandError,
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
    INTERRUPTED = 130


EXIT_CODE_HELP = """\b
Exit codes:
  0    done
  1    something else went wrong
  2    the command line is wrong
  3    the target does not exist, or ended too early
  4    the system does not permit it
  5    not a runtime, or a version, that can be watched
  6    no connection: nobody listens there, refused, or the address is taken
  7    the other end speaks another protocol version, or broke the protocol
  8    a part is not installed: Qt, a system library, or a package that an export needs
  9    not a recording or trace, or it is damaged, or cannot be written
  130  interrupted with Ctrl-C; the target runs on
"""

_CODES: tuple[tuple[type[GCspyError], ExitCode], ...] = (
    (VersionMismatch, ExitCode.PROTOCOL),
    (ProtocolError, ExitCode.PROTOCOL),
    (LinkError, ExitCode.NO_CONNECTION),
    (TargetGone, ExitCode.TARGET_GONE),
    (NotPermitted, ExitCode.NOT_PERMITTED),
    (Unsupported, ExitCode.UNSUPPORTED),
    (RecordingError, ExitCode.RECORDING),
    (TraceError, ExitCode.RECORDING),
)


def exit_code_of(error: GCspyError) -> int:
    """The exit code that tells a script what kind of error it was."""
    if isinstance(error, CommandError):
        return error.exit_code
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return ExitCode.FAILED
