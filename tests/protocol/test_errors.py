"""The tree of errors is the one drawn at the top of its module, and its messages say what to do."""

from __future__ import annotations

import re

import pytest
from gcspy_protocol import errors
from gcspy_protocol.errors import (
    CommandError,
    GCspyError,
    NotPermitted,
    Refused,
    RemoteProtocolError,
    Unsupported,
    VersionMismatch,
)


def drawn_parents() -> dict[str, str]:
    """Each class of the drawing with the class it hangs from."""
    path: list[str] = []
    parents: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    ([│├└─ ]*)([A-Z]\w+)", line)
        if match:
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            parents[match[2]] = path[depth - 1] if depth else "Exception"
    return parents


def test_the_tree_is_the_one_that_is_drawn() -> None:
    classes = {name: getattr(errors, name) for name in errors.__all__}
    assert {name: cls.__base__.__name__ for name, cls in classes.items()} == drawn_parents()


def test_every_error_hangs_in_one_tree_and_no_built_in_error_catches_it() -> None:
    for name in errors.__all__:
        cls = getattr(errors, name)
        assert issubclass(cls, GCspyError)
        assert [base.__name__ for base in cls.__mro__ if base.__module__ == "builtins"] == [
            "Exception", "BaseException", "object",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "who"),
    [((2, 3), "a newer GCspy here"), ((0, 0), "a newer GCspy at the other end")],
)
def test_a_version_mismatch_says_which_end_is_old(theirs: tuple[int, int], who: str) -> None:
    error = VersionMismatch(theirs=theirs, ours=(1, 1))
    assert isinstance(error, RemoteProtocolError)
    assert (error.theirs, error.ours) == (theirs, (1, 1))
    assert f"versions {theirs[0]} to {theirs[1]}" in str(error)
    assert who in str(error)


def test_errors_carry_what_to_do() -> None:
    assert str(NotPermitted("no", remedy="sudo")) == "no: sudo"
    assert NotPermitted("no", remedy="sudo").remedy == "sudo"
    refused = Refused("busy", code="busy", remedy="wait")
    assert (str(refused), refused.code, refused.remedy) == ("busy: wait", "busy", "wait")
    assert str(Refused("busy", code="busy")) == "busy"
    found = Unsupported("cannot read it", found="3.9", known="3.11 to 3.13")
    assert str(found) == "cannot read it: found 3.9; supported: 3.11 to 3.13"
    assert (found.found, found.known) == ("3.9", "3.11 to 3.13")
    assert CommandError("wrong").exit_code == 2
    assert CommandError("wrong", exit_code=9).exit_code == 9
    assert RemoteProtocolError("x", offset=5).offset == 5
