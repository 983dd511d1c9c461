"""Errors become exit codes in one place, and the help lists them all."""

from __future__ import annotations

import pytest
from gcspy_protocol import errors

from gcspy.exit_codes import EXIT_CODE_HELP, ExitCode, exit_code_of


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.TargetGone("gone"), ExitCode.TARGET_GONE),
        (errors.NotPermitted("no", remedy="ask"), ExitCode.NOT_PERMITTED),
        (errors.Unsupported("what", found="a", known="b"), ExitCode.UNSUPPORTED),
        (errors.LinkError("nobody there"), ExitCode.NO_CONNECTION),
        (errors.Refused("no", code="token"), ExitCode.NO_CONNECTION),
        (errors.VersionMismatch(theirs=(2, 3), ours=(1, 1)), ExitCode.PROTOCOL),
        (errors.RemoteProtocolError("bad"), ExitCode.PROTOCOL),
        (errors.RecordingError("no such event"), ExitCode.RECORDING),
        (errors.NotARecording("else"), ExitCode.RECORDING),
        (errors.CorruptChunk("bad", offset=1), ExitCode.RECORDING),
        (errors.CommandError("wrong", exit_code=8), ExitCode.MISSING_PART),
        (errors.GCspyError("else"), ExitCode.FAILED),
    ],
)
def test_an_error_has_the_exit_code_of_its_kind(error: errors.GCspyError, code: ExitCode) -> None:
    assert exit_code_of(error) == code


def test_the_help_lists_every_exit_code() -> None:
    listed = {
        int(line.split()[0]) for line in EXIT_CODE_HELP.splitlines() if line.strip()[:1].isdigit()
    }
    assert listed == {int(code) for code in ExitCode}
