"""New files and folders that appear complete or not at all: written under a temporary name and renamed at the end.

Ctrl-C, an error or a full disk leave an existing file unchanged.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode

__all__ = ["need_place", "new_file", "new_folder"]


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _need_parent(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}")


def _cannot(path: Path, error: OSError) -> CommandError:
    return CommandError(
        f"cannot write {path}: {error.strerror or error}", exit_code=ExitCode.FAILED
    )


def need_place(path: Path, *, replace: bool) -> None:
    """Refuse an impossible place for a new file, before long work for it.

    Raises:
        CommandError: It exists already and must not be replaced, or its folder does not exist.
    """
    if path.exists() and not replace:
        raise CommandError(f"{path} exists already: name another file, or use --force")
    _need_parent(path)


@contextmanager
def new_file(path: Path, *, replace: bool) -> Iterator[Path]:
    """A file that appears under its name when the block ends without an error.

    Args:
        path: Its name.
        replace: Whether a file of that name may be replaced.

    Yields:
        The path to write to.

    Raises:
        CommandError: It exists already, or cannot be written.
    """
    need_place(path, replace=replace)
    part = _temporary(path)
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path, *, replace: bool, ours: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder that appears under its name when the block ends without an error; an empty one may exist.

    Args:
        path: Its name.
        replace: Whether a folder that is `ours` may be replaced, with all its content.
        ours: Whether a folder contains nothing but an earlier export.

    Yields:
        The path to write to; the file exists, and is empty.

    Raises:
        CommandError: It exists already, or cannot be written.
    """
    full = path.exists() and (not path.is_dir() or any(path.iterdir()))
    if full and not replace:
        raise CommandError(f"{path} exists already: name another folder, or use --force")
    if full and not (path.is_dir() and ours(path)):
        raise CommandError(
            f"{path} contains files that are not exported pictures: name another folder, or empty it"
        )
    _need_parent(path)
    part = _temporary(path)
    try:
        part.mkdir()
        yield part
        if path.exists():
            shutil.rmtree(path)
        part.rename(path)
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
