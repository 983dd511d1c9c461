"""From a PID to a driver: who can watch this process, and if nobody, why not."""

from __future__ import annotations

import logging
import os
import select

import psutil
from gcspy_protocol.errors import NotPermitted, TargetGone, Unsupported

from gcspy_server.api import AttachOptions, Driver, Recognition, find_drivers, load_driver

__all__ = ["attach", "recognise"]

_HELLO_SECS = 10.0

_log = logging.getLogger("gcspy")


def recognise(pid: int) -> list[tuple[str, Recognition]]:
    """What each installed driver says of a process.

    Returns:
        Driver name and what it recognised; drivers that know nothing of it are left out.
    """
    found = []
    for name in sorted(find_drivers()):
        try:
            driver = load_driver(name)
        except ImportError as error:
            # Somebody else's package: one that cannot be imported must not hide the others.
            _log.warning("driver %s cannot be loaded: %s", name, error)
            continue
        recognition = driver.recognise(pid)
        if recognition.runtime:
            found.append((name, recognition))
    return found


def attach(pid: int, options: AttachOptions) -> Driver:
    """Attach the driver that knows this process.

    Raises:
        TargetGone: There is no such process.
        NotPermitted: The system does not let us read it.
        Unsupported: No installed driver knows its runtime, or its version.
    """
    if not os.path.isdir(f"/proc/{pid}"):
        raise TargetGone(f"there is no process {pid}: `gcspy ps` lists what can be watched")
    if options.stub_fd is not None:
        # A program that was started for us is what it is to be by the time its stub says hello, or has ended.
        select.select([options.stub_fd], [], [], _HELLO_SECS)
    recognised = recognise(pid)
    for name, recognition in recognised:
        if recognition.supported:
            return load_driver(name).attach(pid, options)
    if recognised:
        # The driver tells more exactly than a cheap look what is wrong, with a remedy; and what was
        # only starting at that look may be there by now.
        return load_driver(recognised[0][0]).attach(pid, options)
    try:
        executable = os.readlink(f"/proc/{pid}/exe")
    except PermissionError as error:
        raise NotPermitted(
            f"process {pid} may not be looked at by this user ({error.strerror})",
            remedy="run gcspy as the user of the process or as root: attaching needs the rights of a debugger",
        ) from error
    except FileNotFoundError as error:
        if (
            not os.path.isdir(f"/proc/{pid}")
            or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        ):
            raise TargetGone(
                f"process {pid} has ended: `gcspy ps` lists what can be watched"
            ) from error
        executable = "a thread of the kernel"
    known = ", ".join(sorted(find_drivers())) or "no driver is installed"
    raise Unsupported(
        f"process {pid} is of no runtime that can be watched", found=executable, known=known
    )
