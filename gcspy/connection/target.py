"""Finds the drivers that can monitor a process, and if there are none, the reason."""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from gcspy_protocol.errors import CommandError, NotPermitted, TargetError, TargetGone, Unsupported

from gcspy.connection.driver_bench import driver_bench
from gcspy_server.api import (
    AttachOptions,
    DetailTable,
    Driver,
    DriverOption,
    HeapQuestion,
    MemoryQuestion,
    MemoryReport,
    ProgramStart,
    find_drivers,
)
from gcspy_server.driver_options import named_values, values_for
from gcspy_server.hosting.driver_group import DriverGroup
from gcspy_server.hosting.driver_thread import DriverThread

__all__ = [
    "attach",
    "attach_group",
    "attach_one",
    "command_of",
    "driver_of",
    "explain_memory",
    "installed_drivers",
    "investigate",
    "one_driver_of",
    "start_option_of",
]

_HELLO_SECS = 10.0

_log = logging.getLogger("gcspy")


def attach_group(
    pid: int,
    options: AttachOptions,
    names: tuple[str, ...] = (),
    *,
    share_events: bool = False,
    given: Mapping[str, str] | None = None,
) -> DriverGroup:
    """Attach the chosen drivers, or the most specific one for the process.

    Args:
        pid: The process.
        options: The user's choices.
        names: Names of drivers, the leading one first; none: the most specific one.
        share_events: Each driver gathers at the exact events of the others, too.
        given: Values of options by ``NAME`` or ``DRIVER.NAME``.

    Raises:
        TargetError: The process cannot be monitored in this way.
        DriverError: A driver is faulty.
        CommandError: A driver was named twice.
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CommandError(f"driver {twice[0]} is named twice: name each driver once")
    names = names or ("",)
    stub_user = _stub_user(names) if options.stub_fd is not None else names[0]
    if stub_user is None:  # the driver that knows the stub leads: the chosen ones only monitor
        names, stub_user = ("", *names), ""
    attached: list[tuple[str, str, Driver]] = []
    threads = [DriverThread(name) for name in names] if len(names) > 1 else []
    left = set(given or {})
    try:
        for number, name in enumerate(names):
            # A stub talks to one driver.
            mine = options if name == stub_user else replace(options, stub_fd=None)
            attaches = partial(attach_one, pid, mine, name, given or {})
            chosen, driver, taken = threads[number].call(attaches) if threads else attaches()
            attached.append((chosen, driver_bench().package(chosen), driver))
            left -= taken
        if left:
            raise CommandError(
                f"option {sorted(left)[0]}: {', '.join(one for one, _, _ in attached)} has no such option; `gcspy drivers NAME` lists the options of a driver"
            )
        return DriverGroup(attached, share_events=share_events, threads=threads)
    except BaseException:
        for number, (_, _, driver) in enumerate(attached):
            if threads:
                threads[number].call(driver.close)
            else:
                driver.close()
        for thread in threads:
            thread.end()
        raise


def command_of(start: ProgramStart, values: Iterable[str] = ()) -> list[str]:
    """Ask the drivers how to start a program with a stub in it; the most certain answer is taken.

    Args:
        start: The program.
        values: Values of drivers' options, as the user gave them.

    Raises:
        CommandError: It is not a program that a driver can start, or an option does not allow its value.
        Unsupported: It is, and cannot be started with a stub here.
        DriverError: A driver is faulty.
    """
    offers, startable = [], []
    given = named_values(values)
    for name in driver_bench().names:
        driver = driver_bench().load_or_tell(name)
        if driver is None or not driver.startable:
            continue
        startable.append(driver.startable)
        mine, _ = values_for(name, driver.declared_options, given)
        try:
            offer = driver.command_line(replace(start, values=mine))
        except TargetError:
            raise
        except Exception as error:  # noqa: BLE001  # somebody else's code: whatever it raises is its mistake
            _log.warning("driver %s: command_line failed: %s", name, error)
            continue
        if offer is not None:
            offers.append(offer)
    if not offers:
        raise CommandError(
            f"no driver can start {start.program}: give {', or '.join(startable) or 'nothing: no driver starts programs'}"
        )
    return max(offers, key=lambda offer: offer[0])[1]


@dataclass(frozen=True, slots=True)
class InstalledDriver:
    """The description of a driver.

    Attributes:
        name: Its name.
        package: Its package, with its version.
        startable: Description of the programs that it can start; empty: none.
        options: Its options.
    """

    name: str
    package: str
    startable: str
    options: tuple[DriverOption, ...]


def installed_drivers(name: str = "") -> list[InstalledDriver]:
    """Return the description of each installed driver, or of one.

    Raises:
        Unsupported: No driver of that name is installed.
        DriverError: The chosen driver is faulty.
    """
    bench = driver_bench((name,)) if name else driver_bench()
    found = []
    for one in bench.names:
        driver = bench.load(one) if name else bench.load_or_tell(one)
        if driver is not None:
            found.append(
                InstalledDriver(one, bench.package(one), driver.startable, driver.declared_options)
            )
    return found


def start_option_of(name: str) -> str:
    """Return the argument that makes a program of a driver's runtime load the stub at its start.

    Raises:
        Unsupported: There is none, or no such driver.
        DriverError: The driver is faulty.
    """
    option = driver_bench((name,)).load(name).start_option()
    if not option:
        raise Unsupported(
            f"driver {name} has no argument that loads a stub at program start",
            found=name,
            known="drivers whose runtime loads a stub at program start",
        )
    return option


def _stub_user(names: tuple[str, ...]) -> str | None:
    """Return the first of the chosen drivers that a stub can talk to; None: there is none."""
    return next(
        (name for name in names if not name or driver_bench((name,)).load(name).has_stub), None
    )


def attach(pid: int, options: AttachOptions) -> Driver:
    """Attach the most specific driver for this process; see `attach_group`."""
    return attach_one(pid, options, "", {})[1]


def driver_of(pid: int, name: str = "") -> type[Driver]:
    """Return the chosen driver, or the most specific one for a process.

    Raises:
        TargetGone: There is no such process.
        Unsupported: No installed driver knows its runtime.
        DriverError: The driver is faulty, or none of this name is installed.
    """
    if not os.path.isdir(f"/proc/{pid}"):
        raise TargetGone(
            f"there is no process {pid}: `gcspy ps` lists the processes that can be monitored"
        )
    bench = driver_bench((name,)) if name else driver_bench()
    recognised = bench.recognise(pid)
    if not recognised and not name:
        raise Unsupported(
            f"no driver knows what runs in process {pid}",
            found=_name_of(pid),
            known=", ".join(bench.names),
        )
    return bench.load(recognised[0].name if recognised else name)


def one_driver_of(pid: int, names: tuple[str, ...] = ()) -> type[Driver]:
    """Return the one driver that a command was given, or the one that knows a process best.

    Raises:
        CommandError: Several drivers were named.
        TargetGone: There is no such process.
        Unsupported: No installed driver knows its runtime.
        DriverError: The driver makes mistakes, or none of this name is installed.
    """
    if len(names) > 1:
        raise CommandError("only one driver can be asked: name one with --driver")
    return driver_of(pid, *names)


def investigate(
    names: tuple[str, ...],
    pid: int,
    question: HeapQuestion,
    progress: Callable[[str, int, int], None],
) -> DetailTable:
    """Answer a question about all objects of a process, with the first of these drivers that supports it; in any thread.

    Raises:
        Unsupported: None of them supports it.
        TargetError: The process is gone, not permitted, or not supported.
    """
    for name in names[:-1]:
        with suppress(Unsupported):
            return driver_bench((name,)).load(name).investigate(pid, question, progress)
    return driver_bench((names[-1],)).load(names[-1]).investigate(pid, question, progress)


def explain_memory(
    names: tuple[str, ...],
    pid: int,
    question: MemoryQuestion,
    progress: Callable[[str, int, int], None],
) -> Iterator[MemoryReport]:
    """Report on all memory of a process, with the first of these drivers that supports it; in any thread.

    Yields:
        The result of the first sample; then, if a second one is requested, the growth until then.

    Raises:
        Unsupported: None of them supports it.
        TargetError: The process is gone, not permitted, or not supported.
    """
    for name in names[:-1]:
        reports = driver_bench((name,)).load(name).explain_memory(pid, question, progress)
        try:
            first = next(reports)
        except Unsupported:
            continue
        yield first
        yield from reports
        return
    yield from driver_bench((names[-1],)).load(names[-1]).explain_memory(pid, question, progress)


def attach_one(
    pid: int, options: AttachOptions, name: str, given: Mapping[str, str]
) -> tuple[str, Driver, set[str]]:
    """Attach the chosen driver, or the most specific one for this process.

    Returns:
        Its name, the driver, and the given options that it used.

    Raises:
        CommandError: An option has an invalid value.
        TargetGone: There is no such process.
        NotPermitted: The system does not let us read it.
        Unsupported: No installed driver knows its runtime, or its version.
        DriverError: The driver is faulty.
    """
    if not os.path.isdir(f"/proc/{pid}"):
        raise TargetGone(
            f"there is no process {pid}: `gcspy ps` lists the processes that can be monitored"
        )
    if options.stub_fd is not None:
        # A program that was started for us has executed its final program by the time its stub says
        # hello, or has ended.
        select.select([options.stub_fd], [], [], _HELLO_SECS)
    bench = driver_bench((name,)) if name else driver_bench()
    recognised = bench.recognise(pid)
    if recognised or name:
        # Also one that cannot be monitored: the driver's error is more exact than a quick check,
        # with a remedy; and a process that was only starting at the check may be ready by now.
        chosen = recognised[0].name if recognised else name
        values, taken = values_for(chosen, bench.load(chosen).declared_options, given)
        return chosen, bench.attach(chosen, pid, replace(options, values=values)), taken
    try:
        executable = os.readlink(f"/proc/{pid}/exe")
    except PermissionError as error:
        raise NotPermitted(
            f"this user may not inspect process {pid} ({error.strerror})",
            remedy="run gcspy as the user of the process or as root: attaching needs the rights of a debugger",
        ) from error
    except FileNotFoundError as error:
        if not os.path.isdir(f"/proc/{pid}") or _has_exited(pid):
            raise TargetGone(
                f"process {pid} has ended: `gcspy ps` lists the processes that can be monitored"
            ) from error
        executable = "a kernel thread"
    known = ", ".join(sorted(find_drivers())) or "no driver is installed"
    raise Unsupported(
        f"no driver supports the runtime of process {pid}", found=executable, known=known
    )


def _name_of(pid: int) -> str:
    import psutil  # 10 ms, for who fails

    return psutil.Process(pid).name()


def _has_exited(pid: int) -> bool:
    import psutil

    return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
