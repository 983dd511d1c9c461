"""Rounds of a soak in which no process is killed: lines are cut, bits flip, relays stall, disks fill up, clocks jump, clients are stopped.

In each round a server watches a target, one client watches undisturbed (the witness), and another
is disturbed. The target works on, the witness continues, the disturbed client continues or gives
its reason, the recording is whole, and nothing is left behind.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from functools import partial

from gcspy_replay.file import Recording

from gcspy.exit_codes import ExitCode
from tests.soak.disturbing_relay import DisturbingRelay
from tests.soak.ground import SMALL_KIB, Command, until
from tests.soak.kills import Fault, Kill, KillRound, Kills

__all__ = ["KINDS", "Disturbances"]

KINDS = ("cut", "flip", "stall", "full disk", "clock jump", "stopped client")

_CLIENTS = ("tail", "recorder")
_BOTH = ("server", "recorder")

_ENDED_WELL = (ExitCode.OK, ExitCode.INTERRUPTED)
_LOST = (ExitCode.NO_CONNECTION, ExitCode.PROTOCOL)
_REFUSED = (*_LOST, ExitCode.FAILED)

_MOST_BYTES = 40_000
"""Of what a server says, in which it is cut or changed; greeting and first keyframe are the most of it."""

_MOST_ASKED = 60
"""Of what a client says; its greeting is longer."""

_JUMPS_SECS = (-86_400 * 365, -3600, -5, 5, 3600, 86_400 * 365)


class Disturbances(Kills):
    """Runs the rounds; a round's `Kill` names a way, a kind of `KINDS`, and the disturbed process."""

    tests = "tests/soak/test_disturbances.py"
    kinds: tuple[str, ...] = KINDS

    def plan(self, rng: random.Random) -> Kill:
        """Choose a way, a kind and a client."""
        kind = rng.choice(self.kinds)
        whom = {"full disk": ("recorder",), "clock jump": _BOTH}.get(kind, _CLIENTS)
        return Kill(rng.choice(("passive", "stopped")), kind, rng.choice(whom))

    def make(self, kill: Kill, rng: random.Random, number: int) -> KillRound:
        """The round of a choice."""
        return _Disturbed(self, kill, rng, number)


class _Disturbed(KillRound):
    """One round."""

    def _watch_and_kill(self) -> str:
        kill, rng = self._kill, self._rng
        jump = rng.uniform(0, 0.5), rng.choice(_JUMPS_SECS)
        clock = jump if kill.victim == "clock jump" else None
        target = self._target()
        assert target is not None
        mode = ("--mode", "stopped") if kill.way == "stopped" else ()
        server = self._begin(
            "attach", str(target.pid), *mode, "--clock", "50", "--budget", "off", "--no-window",
            clock=clock if kill.moment == "server" else None,
        )  # fmt: skip
        address = self._address(server)
        witness = self._begin("tail", address, "--json")
        self._wait(lambda: _lines(witness) > 0, "no event came", server, witness)
        relay = self._relay(address) if kill.victim in ("cut", "flip", "stall") else None
        try:
            client = self._client(address if relay is None else relay.address, clock)
            self._mark()
            self._disturb(client, relay)
            seen = _lines(witness)
            self._wait(lambda: _lines(witness) > seen + 5, "others get no events", server, witness)
        finally:
            if relay is not None:
                relay.close()
        for one in (witness, server):
            one.send(signal.SIGTERM if one is server else signal.SIGINT)
            if not until(partial(_has_ended, one)):
                raise Fault(f"{one.name} does not end")
            if one.status not in _ENDED_WELL and not (
                one is server and one.status == -signal.SIGTERM
            ):
                raise Fault(f"{one.name} ended with {one.status}, undisturbed")
        return kill.moment

    # ------------------------------------------------------------------------ parts

    def _begin(
        self, *words: str, clock: tuple[float, float] | None = None, fsize: int | None = None
    ) -> Command:
        made = self._ground.start(*words, clock=clock, fsize=fsize)
        self._commands.append(made)
        return made

    def _relay(self, address: str) -> DisturbingRelay:
        kind, rng = self._kill.victim, self._rng
        from_server = rng.random() < 0.8
        return DisturbingRelay(
            self._ground.folder / "out" / f"relay{self._number}",
            address,
            harm="" if kind == "stall" else kind,
            at=rng.randrange(_MOST_BYTES if from_server else _MOST_ASKED),
            from_server=from_server,
            bit=rng.randrange(8),
        )

    def _client(self, address: str, clock: tuple[float, float] | None) -> Command:
        if self._kill.moment == "tail":
            return self._begin("tail", address, "--json")
        full = self._kill.victim == "full disk"
        small = full and self._ground.own_tmp and self._rng.random() < 0.5
        folder = self._ground.folder / ("small" if small else "files")
        self._recording = self._ground.inside(folder / f"{self._number}.gcspy")
        if small:
            filler = (SMALL_KIB - self._rng.randrange(8, 128)) << 10
            self._ground.inside(folder / "filler").write_bytes(bytes(filler))
        return self._begin(
            "record", address, "-o", str(folder / f"{self._number}.gcspy"),
            clock=clock if self._kill.moment == "recorder" else None,
            fsize=self._rng.randrange(4 << 10, 100 << 10) if full and not small else None,
        )  # fmt: skip

    def _mark(self) -> None:
        for target in (self._target(), self._scene.control):
            if target is not None:
                target.mark()
        self._killed_nanos = time.monotonic_ns()

    def _wait(self, done: Callable[[], bool], what: str, *alive: Command) -> None:
        """Wait for something that must come, while those live who bring it."""
        until(lambda: done() or any(one.status is not None for one in alive))
        if not done():
            raise Fault(what)

    def _got(self, client: Command) -> int:
        """How far a client has come."""
        path = self._recording
        if path is None:
            return _lines(client)
        return path.stat().st_size if path.exists() else 0

    def _goes_on(self, client: Command) -> bool:
        """Whether a client continues; False: it has ended."""
        before = self._got(client)
        if not until(lambda: client.status is not None or self._got(client) > before):
            raise Fault(f"{client.name} neither goes on nor ends")
        return client.status is None

    def _has_come_to_now(self) -> bool:
        """Whether what is recorded reaches beyond the disturbance; what is printed does in any case."""
        if self._recording is None:
            return True
        with Recording.open(self._recording) as recording:
            return int(recording.events["time_nanos"][-1]) > self._killed_nanos

    def _ends(self, client: Command, *, asked: bool, codes: tuple[int, ...]) -> None:
        """A client has ended as it should, with a word where that is not what was requested."""
        if asked:
            client.send(signal.SIGINT)
        if not until(lambda: client.status is not None):
            raise Fault(f"{client.name} does not end")
        if client.status not in codes:
            raise Fault(f"{client.name} ended with {client.status}, not with one of {codes}")
        if client.status not in _ENDED_WELL and "gcspy" not in client.complains():
            raise Fault(f"{client.name} ended with {client.status}, and does not say why")

    def _disturb(self, client: Command, relay: DisturbingRelay | None) -> None:
        kind, rng = self._kill.victim, self._rng
        if relay is not None and kind != "stall":
            until(lambda: relay.done.is_set() or client.status is not None)
            if not relay.done.is_set():
                raise Fault(f"the client ended by itself: {client.status}")
            self._killed_nanos = time.monotonic_ns()
            goes_on = kind == "flip" and self._goes_on(client)
            # Bytes after the flipped bit may still have been on their way.
            codes = (*_ENDED_WELL, *_REFUSED) if goes_on else _REFUSED
            self._ends(client, asked=goes_on, codes=codes)
            return
        if kind == "full disk":
            until(lambda: client.status is not None)
            self._killed_nanos = time.monotonic_ns()
            self._ends(client, asked=False, codes=(ExitCode.RECORDING,))
            return
        self._wait(lambda: self._got(client) > 0, "nothing came", client)
        # How long is the experiment: what is waited for is that all else goes on meanwhile.
        secs = rng.uniform(0.1, 2.5)
        if relay is not None:
            relay.hold()
            until(lambda: client.status is not None, secs)
            relay.go_on()
        elif kind == "stopped client":
            client.send(signal.SIGSTOP)
            until(lambda: client.status is not None, secs)
            client.send(signal.SIGCONT)
        else:
            until(lambda: client.status is not None, 0.7)  # by then the clock has jumped
        self._killed_nanos = time.monotonic_ns()
        goes_on = self._goes_on(client)
        # A held client has to process the backlog; the test is that it reaches current events.
        if goes_on and not until(lambda: client.status is not None or self._has_come_to_now()):
            raise Fault(f"{client.name} stays behind")
        self._ends(client, asked=client.status is None, codes=_ENDED_WELL if goes_on else _LOST)

    def _judge_left(self, target: object) -> None:
        for path in (self._ground.inside(self._ground.folder / "small")).iterdir():
            if path != self._recording:
                path.unlink()
        super()._judge_left(self._target())

    def clear(self) -> None:
        """End the remaining processes, and remove the files."""
        for command in self._commands:
            command.send(signal.SIGCONT)
        super().clear()
        for path in self._ground.inside(self._ground.folder / "small").iterdir():
            path.unlink()


def _has_ended(command: Command) -> bool:
    return command.status is not None


def _lines(command: Command) -> int:
    return command.says().count("\n")
