"""The agent: its file, whether a JVM can load it, and loading it into a running one, and removing it.

It is one small library of ours (``drivers/native/hotspot_agent.c``), built when gcspy is installed
if a C compiler and the headers of a JVM are available. `agent_library` says how a JVM gets it.

Knows the agent's options and answers; knows neither its line nor the heap.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.hotspot.agent.agent_library import AgentLibrary, installed
from gcspy_drivers.hotspot.agent.attach_protocol import AttachListener
from gcspy_drivers.hotspot.agent.meeting_place import meet, meeting_place
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.remote.handover import Handover
from gcspy_drivers.remote.process import Process

__all__ = ["BUILD_REMEDY", "INJECTIONS", "Agent", "at_start", "library", "why_not_loaded"]

INJECTIONS: Final = ("auto", "agent")
"""Ways to load it; ``auto``: and if that is impossible, monitor from outside."""

BUILD_REMEDY: Final = (
    "install a C compiler and the headers of a JVM (Debian: apt-get install gcc libc6-dev default-jdk-headless; or set JAVA_HOME to a JDK), "
    "and install gcspy again"
)

_ANSWERS: Final = {
    "101": "it did not understand the request",
    "102": "another gcspy has its agent: `gcspy view {pid}` joins that one, or end it",
    "103": "it could not connect to gcspy: is a sandbox (seccomp, AppArmor) in the way?",
    "104": "it does not send collection events to an agent",
    "105": "its agent is in use: try again",
}
_OTHERWISE: Final = (
    "with `gcspy run -- java …`, or with the option that `gcspy ps --java-option` prints"
)
_FORGET_SECS: Final = 2.0


def library() -> Path | None:
    """Return where the agent is; None when it was not built."""
    return installed("gcspy-agent")


def why_not_loaded(jvm: Jvm) -> str:
    """Return why a running JVM cannot load the agent, with the remedy; empty if it can, as far as visible from outside.

    Raises:
        TargetGone: It has ended.
    """
    if meeting_place(jvm.process):
        return ""
    if library() is None:
        return f"the agent was not built when gcspy was installed: {BUILD_REMEDY}"
    if jvm.flags.on("DisableAttachMechanism"):
        return f"it was started with -XX:+DisableAttachMechanism: start it without, or {_OTHERWISE}"
    if "EnableDynamicAgentLoading" in jvm.flags and not jvm.flags.on("EnableDynamicAgentLoading"):
        return (
            f"it was started with -XX:-EnableDynamicAgentLoading: start it without, or {_OTHERWISE}"
        )
    return AttachListener(jvm.process).why_not()


def at_start(option: str) -> str:
    """Return the argument with which a JVM has the agent from its start.

    Args:
        option: The agent's option.

    Raises:
        Unsupported: It was not built.
    """
    found = library()
    if found is None:
        raise Unsupported(
            f"there is no agent for JVMs here: {BUILD_REMEDY}",
            found="no agent",
            known="monitoring from outside",
        )
    return f"-agentpath:{found}={option}"


class Agent:
    """The agent in one JVM.

    Args:
        process: The process; borrowed.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._library = AgentLibrary(process, _ANSWERS)

    def bring_in(self, jvm: Jvm, how: str, *, secs: float) -> socket.socket:
        """Have a JVM load it and connect.

        Args:
            jvm: The JVM.
            how: One of `INJECTIONS`.
            secs: How long to wait for the JVM.

        Returns:
            The connection; the caller's to close.

        Raises:
            Unsupported: It cannot be given an agent, or not in this way.
            TargetError: It did not take it, or not in time.
        """
        pid = self._process.pid
        if how not in INJECTIONS:
            raise Unsupported(
                "a JVM does not support this kind of stub",
                found=f"--inject {how}",
                known=", ".join(INJECTIONS),
            )
        place = meeting_place(self._process)
        if place:
            return meet(self._process, place, secs=secs)
        why_not = why_not_loaded(jvm)
        image = library()
        if why_not or image is None:
            raise Unsupported(
                f"process {pid} cannot load the agent: {why_not}",
                found="no agent",
                known="monitoring from outside",
            )
        deadline = time.monotonic() + secs
        with Handover(self._process, code=True) as folder:
            self._library.load(image, folder, f"connect:{folder.path}/socket", deadline)
            connection = folder.accept(max(0.1, deadline - time.monotonic()))
            if connection is None:
                self._process.check()
                raise TargetError(f"process {pid}: the agent did not connect; try again")
            return connection

    def take_out(self) -> None:
        """Make the JVM's agent release all its resources; a JVM that does not answer keeps one that does nothing."""
        self._library.take_out(secs=_FORGET_SECS)
