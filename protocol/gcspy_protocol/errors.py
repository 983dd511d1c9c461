"""The one tree of errors that GCspy raises on purpose.

    GCspyError
    ├── ProtocolError
    │   ├── LocalProtocolError      our side broke the protocol: a defect of ours
    │   └── RemoteProtocolError     the peer broke it (.offset: where in its bytes)
    │       ├── VersionMismatch     no protocol version in common (.theirs, .ours)
    │       └── Unproven            the peer has not proved that it knows the token
    ├── LinkError                   the connection could not be made, or ended
    │   └── Refused                 the server answered and said no (.code, .remedy)
    ├── TargetError                 the process that is to be watched
    │   ├── TargetGone              it does not exist, or has ended
    │   ├── NotPermitted            the system does not let us read it (.remedy)
    │   └── Unsupported             we do not know this runtime (.found, .known)
    ├── DriverError                 a driver made a mistake: a defect of the package that it is from
    ├── RecordingError              a recording cannot be written, or lacks the requested data
    │   ├── NotARecording           the file is something else, or of a later format
    │   ├── TruncatedRecording      it ends before the requested data (.offset)
    │   └── CorruptChunk            bytes of it are damaged (.offset, .chunk)
    ├── TraceError                  an object trace cannot be read, or is damaged (.file, .buffer, .offset, .event)
    ├── ExpressionError             an expression that a person wrote is none (.text, .offset)
    │   ├── UnknownName             it contains a name that the session does not have, or not yet
    │   └── AmbiguousName           it names what several spaces have (.choices: the words to use)
    └── CommandError                the command line was used wrongly (.exit_code)

Each message has the numbers in it and says what to do next. Nothing here
inherits from a built-in error: catching ``ValueError`` must not catch ours.
"""

from __future__ import annotations

__all__ = [
    "AmbiguousName",
    "CommandError",
    "CorruptChunk",
    "DriverError",
    "ExpressionError",
    "GCspyError",
    "LinkError",
    "LocalProtocolError",
    "NotARecording",
    "NotPermitted",
    "ProtocolError",
    "RecordingError",
    "Refused",
    "RemoteProtocolError",
    "TargetError",
    "TargetGone",
    "TraceError",
    "TruncatedRecording",
    "UnknownName",
    "Unproven",
    "Unsupported",
    "VersionMismatch",
]


class GCspyError(Exception):
    """Base of every error that GCspy raises on purpose."""


class ProtocolError(GCspyError):
    """The wire protocol was broken by one of its two ends."""


class LocalProtocolError(ProtocolError):
    """We asked the protocol for something it does not allow: a defect on our side."""


class RemoteProtocolError(ProtocolError):
    """The peer sent bytes that the protocol does not allow.

    Args:
        message: Description of the error, with the numbers.
        offset: Position in the peer's byte stream of the frame that was wrong.
    """

    def __init__(self, message: str, *, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


class VersionMismatch(RemoteProtocolError):
    """The two ends have no protocol version in common.

    Args:
        theirs: Lowest and highest version that the peer speaks.
        ours: Lowest and highest version that we speak here.
        reason: Why we speak no other version here; empty: we know no other.
    """

    def __init__(self, *, theirs: tuple[int, int], ours: tuple[int, int], reason: str = "") -> None:
        side = "a newer GCspy here" if theirs[0] > ours[1] else "a newer GCspy at the other end"
        super().__init__(
            f"the peer speaks protocol versions {theirs[0]} to {theirs[1]}, this end {ours[0]} to {ours[1]}: "
            f"{f'{reason}; ' if reason else ''}install {side}, or the same release at both ends"
        )
        self.theirs = theirs
        self.ours = ours


class Unproven(RemoteProtocolError):
    """The peer has not proved that it knows the token: its token is different, or it is another program."""


class LinkError(GCspyError):
    """A connection could not be made, or ended early."""


class Refused(LinkError):
    """The server answered and refused us.

    Args:
        message: The server's message.
        code: The wire's error code (``ErrorCode`` name in lower case).
        remedy: Remedy for the user; may be empty.
    """

    def __init__(self, message: str, *, code: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.code = code
        self.remedy = remedy


class TargetError(GCspyError):
    """The process that is to be monitored causes an error."""


class TargetGone(TargetError):
    """The target does not exist, or ended while it was monitored."""


class NotPermitted(TargetError):
    """The system does not let this user read the target.

    Args:
        message: The refusal.
        remedy: The command or setting that would permit it.
    """

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(f"{message}: {remedy}")
        self.remedy = remedy


class Unsupported(TargetError):
    """The target is of a kind or version that no driver here knows.

    Args:
        message: Description of the unsupported target.
        found: Kind or version of the target.
        known: Supported kinds or versions.
    """

    def __init__(self, message: str, *, found: str, known: str) -> None:
        super().__init__(f"{message}: found {found}; supported: {known}")
        self.found = found
        self.known = known


class DriverError(GCspyError):
    """A driver made a mistake; the message names it and its package."""


class RecordingError(GCspyError):
    """A recording cannot be written, or does not contain the requested data."""


class NotARecording(RecordingError):
    """The file is not a recording, or it has a later format than this GCspy reads."""


class TruncatedRecording(RecordingError):
    """The recording ends before the requested data.

    Args:
        message: Description of the missing component.
        offset: Where it should have been in the file.
    """

    def __init__(self, message: str, *, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


class CorruptChunk(RecordingError):
    """Bytes of a recording are damaged.

    Args:
        message: Description of the defect, with the numbers.
        offset: Place in the file.
        chunk: Number of the chunk, or None if that is not known.
    """

    def __init__(self, message: str, *, offset: int, chunk: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        self.chunk = chunk


class TraceError(GCspyError):
    """A trace of objects cannot be read, or is damaged.

    Args:
        message: Found and expected content, and the place: file, buffer, byte, event.
        file: Name of the file.
        offset: Place in it, in bytes: of the buffer if `buffer` is given; -1 if the error has no
            place.
        buffer: Number of the buffer over all files, from 0; None outside of buffers.
        event: Number of the event over all files, from 0; None outside of events.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str,
        offset: int = -1,
        buffer: int | None = None,
        event: int | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset
        self.buffer = buffer
        self.event = event


class ExpressionError(GCspyError):
    """An expression that a person wrote cannot be parsed or evaluated.

    Args:
        message: Description of the error.
        text: The expression.
        offset: Place in it, in characters.
    """

    def __init__(self, message: str, *, text: str, offset: int) -> None:
        super().__init__(f"{message} (at character {offset + 1})")
        self.text = text
        self.offset = offset

    def pointed(self) -> str:
        """Two lines: the text around the place, and a mark under it."""
        start = max(0, self.offset - 60)
        shown = "".join(c if c.isprintable() else " " for c in self.text[start : self.offset + 20])
        return f"{shown}\n{' ' * (self.offset - start)}^"


class UnknownName(ExpressionError):
    """An expression names a space or stream that the session does not have (yet)."""


class AmbiguousName(ExpressionError):
    """An expression uses a name that several streams or spaces have.

    Args:
        message: Description of the error.
        text: The expression.
        offset: Place of the name, in characters.
        choices: Unambiguous replacements of the name; may be empty.
    """

    def __init__(
        self, message: str, *, text: str, offset: int, choices: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, text=text, offset=offset)
        self.choices = choices


class CommandError(GCspyError):
    """A command cannot be carried out as given.

    Args:
        message: Description of the error and its remedy.
        exit_code: The process's exit code; the list is in ``gcspy --help``.
    """

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code
