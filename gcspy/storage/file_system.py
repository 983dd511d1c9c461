"""File systems behind addresses: `file_system_of` finds one with fsspec, and `storage_error` says what went wrong without saying any secret.

Credentials come from where the libraries of a storage look for them: variables such as AWS_ACCESS_KEY_ID and AWS_PROFILE, files
such as ~/.aws/credentials, the machine's role, and fsspec's own configuration. Nothing here sees them. Addresses may have some, as
may the texts of errors: a message has the address without its user and its query, and the name of the error.

Knows fsspec; does not know recordings.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from gcspy_protocol.errors import CommandError, RecordingError

from gcspy.exit_codes import ExitCode

__all__ = ["StoragePlace", "file_system_of", "shown_address", "storage_error"]

_S3: Final = ("s3", "s3a")
_WEB: Final = ("http", "https")
_CONNECT_SECS: Final = 10
_READ_SECS: Final = 30
_S3_ATTEMPTS: Final = 2


class StoragePlace(NamedTuple):
    """An address that was resolved.

    Attributes:
        system: An fsspec file system.
        path: The path in it.
        shown: The address for messages.
    """

    system: Any
    path: str
    shown: str


def shown_address(address: str) -> str:
    """Return an address without its user, password and query."""
    return re.sub(r"://[^/@]*@", "://", address).partition("?")[0].partition("#")[0]


def file_system_of(address: str) -> StoragePlace:
    """Find the file system of an address, and the path in it.

    Raises:
        CommandError: fsspec, or what it needs for this kind of address, is not installed.
        RecordingError: There is no such kind of address.
    """
    shown = shown_address(address)
    scheme = address.partition("://")[0].lower()
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise _missing(shown, error) from error
    try:
        system, path = url_to_fs(address, **_options(scheme))
    except ImportError as error:
        raise _missing(shown, error) from error
    except ValueError as error:
        raise RecordingError(
            f"{shown}: there is no storage with addresses that begin with {scheme}://"
        ) from error
    except Exception as error:  # each file system has errors of its own
        raise storage_error(shown, "cannot be opened", error) from error
    if scheme in _S3:
        system.retries = 1  # whoever asks asks again: no waiting within waiting
    return StoragePlace(system, str(path), shown)


def _options(scheme: str) -> dict[str, Any]:
    """Return the limits of waiting; fsspec's own configuration may have others."""
    from fsspec.config import conf

    if scheme in _S3:
        if "config_kwargs" in conf.get("s3", {}):
            return {}
        retries = {"max_attempts": _S3_ATTEMPTS, "mode": "standard"}
        limits = {"connect_timeout": _CONNECT_SECS, "read_timeout": _READ_SECS, "retries": retries}
        return {"config_kwargs": limits}
    if scheme in _WEB:
        from aiohttp import ClientTimeout

        waiting = ClientTimeout(total=None, sock_connect=_CONNECT_SECS, sock_read=_READ_SECS)
        return {"client_kwargs": {"timeout": waiting}}
    return {}


def storage_error(shown: str, what: str, error: BaseException) -> RecordingError:
    """Return an error about an address. The texts of other libraries' errors are left out: they may have an address with its secrets."""
    return RecordingError(f"{shown} {what}: {_reason(error)}")


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "no permission: are the credentials of the storage set, such as AWS_PROFILE or AWS_ACCESS_KEY_ID?"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    name = type(error).__name__
    if name == "NoCredentialsError":
        return "no credentials: set those of the storage, such as AWS_PROFILE or AWS_ACCESS_KEY_ID"
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return f"the server answered {status}"
    if isinstance(error, OSError) and error.strerror and "://" not in error.strerror:
        return error.strerror
    return name


def _missing(shown: str, error: ImportError) -> CommandError:
    host = urlsplit(shown).scheme
    package = error.name or f"for {host}://"
    return CommandError(
        f"{shown}: reading addresses needs the package {package}, which is not installed; in a clone of gcspy: pip install '.[storage]'",
        exit_code=ExitCode.MISSING_PART,
    )
