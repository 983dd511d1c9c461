"""Rounds of a soak: a process is killed at a random moment, then the required conditions are checked.

A round is a *way* to watch, a *victim*, and a *moment*. All of a round comes from its seed, which is made of the soak's seed
and the round's number: `GCSPY_SOAK_ROUND=SEED:NUMBER` repeats one round alone.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import FileSource, Recording, verify

from tests.soak.ground import PATIENCE_SECS, ROOT, Command, Ground, Target, until

__all__ = ["MOST_SECS", "WAYS", "Fault", "Kill", "KillRound", "Kills", "Scene", "plan"]

MOST_SECS = 1.0
"""How long a target may stand still, and what a recording may lose; to which the control's lateness is added."""

SAMPLE = ROOT / "replay" / "samples" / "semispace.gcspy"
BEATING = ROOT / "tests" / "soak" / "beating_target.py"

_WAYS = {
    "passive": ("python", ()),
    "stopped": ("python", ("--mode", "stopped")),
    "gdb": ("python", ("--inject", "gdb")),
    "remote-exec": ("python 3.14", ("--inject", "remote-exec")),
    "agent": ("java", ("--inject", "agent")),
    "java passive": ("java", ()),
}
"""Of ways to attach: which target, and with which options."""

_WEIGHTS = {
    "passive": 5,
    "stopped": 5,
    "gdb": 2,
    "remote-exec": 3,
    "agent": 4,
    "java passive": 1,
    "run": 5,
    "replay": 3,
}

_VICTIMS = {
    "attach": {"server": 5, "sidecar": 2, "window": 2, "recorder": 4, "recorder of a session": 3},
    "run": {"server": 5, "sidecar": 1, "window": 1, "recorder of a session": 2},
    "replay": {"player": 5, "sidecar": 1, "window": 1},
}

_MOMENTS = {
    "server": ("attaching", "gathering", "gathering", "closing"),
    "player": ("attaching", "gathering", "closing"),
    "sidecar": ("attaching", "gathering", "closing"),
    "window": ("attaching", "gathering", "closing"),
    "recorder": ("attaching", "writing", "writing", "closing"),
    "recorder of a session": ("attaching", "writing", "writing", "closing"),
}


_LISTENS = ("server", "sidecar", "player")

_HANDED_OVER = re.compile(r"/tmp/gcspy-[0-9a-f]{16}")

NEW_SECS = 11.0
"""A socket this old belongs to a process that listens, or to none."""

_GONE = "gone"
"""In place of a moment: the victim had ended before."""


_WITH_WINDOW = ("window", "sidecar")

WAYS = tuple(_WEIGHTS)


class Fault(AssertionError):
    """Something that must hold did not."""


@dataclass(frozen=True, slots=True)
class Kill:
    """The process killed in a round, and the moment.

    Attributes:
        way: How the target is monitored.
        victim: The killed process.
        moment: When.
    """

    way: str
    victim: str
    moment: str


@dataclass
class Scene:
    """Processes that exist during all rounds.

    Attributes:
        ground: The ground.
        control: A target without observers: its delays are the machine's.
        targets: By kind: ``python``, ``java``, ``python 3.14``; some may not be here.
        display: Environment of commands with a window, a real display; empty: no windows are killed.
        ways: Ways of monitoring to use.
    """

    ground: Ground
    control: Target
    targets: dict[str, Target]
    display: dict[str, str]
    ways: tuple[str, ...] = WAYS


def plan(rng: random.Random, scene: Scene) -> Kill:
    """Choose what a round does, of what can be done here."""
    ways = {
        way: weight
        for way, weight in _WEIGHTS.items()
        if way in scene.ways and (way not in _WAYS or _WAYS[way][0] in scene.targets)
    }
    (way,) = rng.choices(list(ways), list(ways.values()))
    victims = _VICTIMS.get(way, _VICTIMS["attach"])
    if not scene.display:
        victims = {name: weight for name, weight in victims.items() if name not in _WITH_WINDOW}
    (victim,) = rng.choices(list(victims), list(victims.values()))
    return Kill(way, victim, rng.choice(_MOMENTS[victim]))


@dataclass
class Kills:
    """Goes through rounds.

    Attributes:
        scene: Where.
        seed: Of all rounds.
        counts: Rounds judged, by kill; the moment is the one that it came to.
        faults: The failed conditions, a text a round; filled by the runner of the rounds.
        gone_before: Rounds in which the victim had ended before it was killed.
        latest_secs: The longest that a target stood still after a kill, beyond the control's lateness.
        lost_secs: The most that a recording lost.
        sockets: Sockets that kills left in the runtime folder.
        folders: Folders that kills left in the targets' place for them.
        tests: Where its rounds are repeated.
    """

    scene: Scene
    seed: int
    counts: Counter[Kill] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    gone_before: int = 0
    latest_secs: float = 0.0
    lost_secs: float = 0.0
    sockets: int = 0
    folders: set[str] = field(default_factory=set)
    tests = "tests/soak/test_kills.py"
    _typical: dict[tuple[str, str, str], float] = field(default_factory=dict)
    _baselines: dict[int, dict[str, list[str]]] = field(default_factory=dict)

    def round(self, number: int) -> Kill:
        """Do one round.

        Raises:
            Fault: Something did not hold; it says how to repeat the round.
        """
        rng = random.Random(f"{self.seed}:{number}")
        kill = self.plan(rng)
        one = self.make(kill, rng, number)
        try:
            came_to = one.run()
        except Exception as error:
            raise Fault(
                f"round {number} of seed {self.seed}, {kill}: {error}\n"
                f"{one.told()}\n"
                f"repeat: GCSPY_SOAK_ROUND={self.seed}:{number} python -m pytest -m soak {self.tests} -s"
            ) from error
        finally:
            one.clear()
        if came_to is None:
            self.gone_before += 1
            return kill
        self.counts[came_to] += 1
        return came_to

    def plan(self, rng: random.Random) -> Kill:
        """Choose what a round does."""
        return plan(rng, self.scene)

    def make(self, kill: Kill, rng: random.Random, number: int) -> KillRound:
        """The round of a choice."""
        return KillRound(self, kill, rng, number)

    def judge_sweep(self) -> None:
        """A new server removes the files of killed ones, once they are old enough to have no owner.

        Raises:
            Fault: Something stays.
        """
        ground, target = self.scene.ground, self.scene.targets["python"]
        left = [ground.runtime / name for name in ground.runtime_files()]
        until(lambda: all(time.time() - path.stat().st_mtime > NEW_SECS for path in left))
        server = ground.start("attach", str(target.pid), "--no-window")
        until(lambda: "join with" in server.says() or _has_ended(server))
        until(lambda: not any(path.exists() for path in left))
        stay = [path.name for path in left if path.exists()]
        server.send(signal.SIGTERM)
        until(lambda: _has_ended(server))
        if stay or ground.runtime_files():
            raise Fault(f"left by the killed: {stay}; after all: {ground.runtime_files()}")
        if self.folders:
            self._judge_folders(ground, target)

    def _judge_folders(self, ground: Ground, target: Target) -> None:
        server = ground.start("attach", str(target.pid), "--inject", "gdb", "--no-window")
        until(lambda: "join with" in server.says() or _has_ended(server))
        server.send(signal.SIGTERM)
        until(lambda: _has_ended(server))
        stay = {f"/tmp/{name}" for name in ground.tmp_files()} & self.folders
        if stay:
            raise Fault(f"folders of the killed stay: {stay}; {server.complains()}")

    def typical(self, key: tuple[str, str, str], secs: float | None = None) -> float:
        """The estimated time of an action; given the measured time, it is remembered."""
        before = self._typical.get(key, 1.0)
        if secs is not None:
            self._typical[key] = before = 0.7 * before + 0.3 * secs
        return before

    def baseline(self, target: Target) -> dict[str, list[str]]:
        """The residue of a target without observers: measured the first time when there is none."""
        if target.pid not in self._baselines:
            self._baselines[target.pid] = target.residue()
        return self._baselines[target.pid]

    def told(self) -> str:
        """The counts, a line each."""
        lines = [
            f"{count:6}  {kill.way:14} {kill.victim:22} {kill.moment}"
            for kill, count in sorted(self.counts.items(), key=lambda item: str(item[0]))
        ]
        return "\n".join(
            [
                *lines,
                f"{sum(self.counts.values()):6}  kills judged, seed {self.seed}; in {self.gone_before} more rounds the victim had ended",
                f"target on again within {self.latest_secs:.2f} s, recordings lost at most {self.lost_secs:.2f} s",
                f"{self.sockets} sockets left by kills at most at a time, {len(self.folders)} folders in all",
            ]
        )


def _has_ended(command: Command) -> bool:
    return command.status is not None


def _second_beats(target: Target, units: int) -> bool:
    return target.second() > units


class KillRound:
    """One round."""

    def __init__(self, kills: Kills, kill: Kill, rng: random.Random, number: int) -> None:
        self._kills, self._kill, self._rng, self._number = kills, kill, rng, number
        self._scene, self._ground = kills.scene, kills.scene.ground
        self._commands: list[Command] = []
        self._own_target: Target | None = None
        self._recording: Path | None = None
        self._killed_nanos = 0
        self._asked_to_end = False
        self._before = self._ground.begin()

    # --------------------------------------------------------------------------- steps

    def run(self) -> Kill | None:
        """Start, kill, check; return the kill with its actual moment, None where there was no process to kill."""
        kill, control = self._kill, self._scene.control
        target = self._target()
        if target is not None and kill.way != "run":
            self._kills.baseline(target)
        came_to = self._watch_and_kill()
        watched = [one for one in (target, control) if one is not None]
        self._judge_ends()
        self._judge_progress(watched)
        self._judge_left(target)
        if self._recording is not None:
            self._judge_recording(self._recording)
        return None if came_to == _GONE else Kill(kill.way, kill.victim, came_to)

    def told(self) -> str:
        """Return the output of the round's commands."""
        return "\n".join(
            f"--- {one.name}: {one.status}\n{one.says()[-400:]}{one.complains()[-4000:]}"
            for one in self._commands
        )

    def clear(self) -> None:
        """End the remaining processes, and remove the files."""
        for command in self._commands:
            command.send(signal.SIGKILL)
        for pid in self._ground.processes() - self._before.processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not self._ground.processes() - self._before.processes)
        self._ground.forget(*self._commands)
        for path in (self._ground.folder / "files").iterdir():
            path.unlink()

    # ------------------------------------------------------------------------ watching

    def _target(self) -> Target | None:
        if self._kill.way in _WAYS:
            return self._scene.targets[_WAYS[self._kill.way][0]]
        return None

    def _start(self, *words: str) -> Command:
        window = words[0] in ("attach", "run", "replay") and "--no-window" not in words
        made = self._ground.start(*words, env=self._scene.display if window else None)
        self._commands.append(made)
        return made

    def _watching(self, *, window: bool) -> Command:
        """Start what watches, or plays."""
        kill = self._kill
        more = () if window else ("--no-window",)
        if kill.way == "replay":
            return self._start("replay", str(SAMPLE), "--loop", "all", *more)
        if kill.way == "run":
            path, shared = self._ground.shared_page()
            self._own_target = Target(0, shared)
            return self._start("run", "--clock", "50", *more, str(BEATING), str(path))
        target = self._target()
        assert target is not None
        options = (*_WAYS[kill.way][1], "--clock", "50")
        return self._start("attach", str(target.pid), *options, *more)

    def _recorder(self, source: str, *options: str) -> Command:
        self._recording = self._ground.folder / "files" / f"{self._number}.gcspy"
        return self._start("record", source, "-o", str(self._recording), *options)

    def _watch_and_kill(self) -> str:
        kill, began = self._kill, time.monotonic()
        if kill.victim == "recorder":
            target = self._target()
            assert target is not None
            options = (*_WAYS[kill.way][1], "--clock", "50", "--budget", "off")
            main = self._recorder(str(target.pid), *options)
            return self._kill_at(main, lambda: main.pid, self._records, began)
        if kill.victim == "recorder of a session":
            server = self._watching(window=False)
            address = self._address(server)
            began = time.monotonic()
            main = self._recorder(address)
            came_to = self._kill_at(main, lambda: main.pid, self._records, began)
            if kill.way != "run":  # there that is the program's, which will be ended
                server.send(signal.SIGTERM)
            return came_to
        if kill.victim in ("window", "sidecar"):
            main = self._watching(window=True)
            if kill.victim == "window":
                came_to = self._kill_at(main, lambda: main.pid, self._is_served, began)
            else:
                came_to = self._kill_at(main, lambda: self._sidecar(main), self._is_served, began)
                self._window_ends(main)
            return came_to
        main = self._watching(window=False)
        if kill.moment == "attaching":
            return self._kill_at(main, lambda: main.pid, self._says_join, began)
        address = self._address(main)
        tail = self._start("tail", address, "--json")
        assert until(lambda: tail.says() or tail.status is not None), "no event came"
        return self._kill_at(main, lambda: main.pid, lambda: True, began)

    def _window_ends(self, window: Command) -> None:
        """A window whose sidecar is gone stays, and reports it; it ends on request."""
        if not self._asked_to_end:
            window.send(signal.SIGTERM)
            self._asked_to_end = True

    def _address(self, server: Command) -> str:
        began = time.monotonic()
        assert until(lambda: "join with" in server.says() or server.status is not None)
        if server.status is not None:
            raise Fault(f"the server ended by itself: {server.status}")
        self._kills.typical(self._key("attaching"), time.monotonic() - began)
        # The program that it started writes to the same terminal.
        return str(re.findall(r"gcspy view (\S+)", server.says())[-1])

    # ------------------------------------------------------------------------- killing

    def _key(self, moment: str) -> tuple[str, str, str]:
        return self._kill.way, self._kill.victim, moment

    def _says_join(self) -> bool:
        return "join with" in self._commands[0].says()

    def _records(self) -> bool:
        path = self._recording
        return path is not None and path.exists() and path.stat().st_size > 2048

    def _is_served(self) -> bool:
        """Whether a socket of the round is there: the sidecar listens."""
        return bool(self._sockets_of_round())

    def _sockets_of_round(self) -> list[Path]:
        """Sockets that a process of this round listens on."""
        listening = Path("/proc/net/unix").read_text()
        return [
            path
            for path in (self._ground.runtime / name for name in self._ground.runtime_files())
            if str(path) in listening
        ]

    def _sidecar(self, window: Command) -> int | None:
        found = self._ground.children(window.pid)
        for pid in found:
            with suppress(FileNotFoundError, ProcessLookupError):
                if b"gcspy.hosts.sidecar" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return None

    def _kill_at(
        self,
        main: Command,
        victim: Callable[[], int | None],
        ready: Callable[[], bool],
        began: float,
    ) -> str:
        """Kill at the requested moment; return the actual one, `_GONE` where the process was gone already."""
        kill, rng, kills = self._kill, self._rng, self._kills
        if kill.moment == "attaching":
            secs = rng.uniform(0, 1.1 * kills.typical(self._key("attaching")))
            # The moment is random on purpose: here and below the wait is the experiment.
            until(lambda: main.status is not None, secs)
            until(lambda: victim() is not None or main.status is not None)
        else:
            if not until(lambda: ready() or main.status is not None):
                raise Fault("it was never ready")
            if main.status is not None:
                raise Fault(f"it ended by itself, exit code {main.status}")
            kills.typical(self._key("attaching"), time.monotonic() - began)
            until(lambda: main.status is not None, rng.uniform(0, 0.4))
        if kill.moment == "closing":
            # A program that is run has Ctrl-C for itself.
            main.send(
                signal.SIGTERM if kill.way == "run" else rng.choice((signal.SIGINT, signal.SIGTERM))
            )
            self._asked_to_end = True
            told = time.monotonic()
            secs = rng.uniform(0, 1.1 * kills.typical(self._key("closing")))
            if until(lambda: main.status is not None, secs):
                kills.typical(self._key("closing"), time.monotonic() - told)
        was_ready = ready()
        pid = victim()
        for target in (self._target(), self._own_target, self._scene.control):
            if target is not None:
                target.mark()
        self._killed_nanos = time.monotonic_ns()
        if pid is None or main.status is not None:
            return _GONE
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if pid == main.pid:
            until(lambda: main.status is not None)
            if main.status != -signal.SIGKILL:
                return _GONE
        if kill.moment == "attaching" and was_ready:
            return "writing" if kill.victim.startswith("recorder") else "gathering"
        return kill.moment

    # ------------------------------------------------------------------------- judging

    def _judge_ends(self) -> None:
        """All else of the round ends by itself, and nothing crashes."""
        if self._own_target is not None:
            self._judge_program()
        for command in self._commands:
            if not until(partial(_has_ended, command)):
                command.send(signal.SIGABRT)  # its errors have its stacks then
                until(partial(_has_ended, command))
                raise Fault(f"{command.name} is still there after {PATIENCE_SECS:.0f} s")
            status = command.status
            assert status is not None
            if status < 0 and status != -signal.SIGKILL:
                raise Fault(f"{command.name} ended by signal {-status}")
            said = command.complains()
            for sign in ("Traceback", "Fatal Python error", "QThread: Destroyed", "core dumped"):
                if sign in said:
                    raise Fault(f"{command.name} says {sign}")

    def _judge_program(self) -> None:
        """The program of `gcspy run` works on, whichever process was killed; then it is ended, and so are the processes that wait for it."""
        target = self._own_target
        assert target is not None
        until(lambda: self._program() or not self._strangers())
        target.pid = self._program()
        if not target.pid:
            if self._kill.moment == "attaching" or self._asked_to_end:
                return  # it was not started yet, or was ended on request
            raise Fault("the program is gone")
        if not until(lambda: target.beat_since(self._killed_nanos) or not self._program()):
            raise Fault("the program does not go on")
        if self._program():
            self._judge_gap(target.longest_secs)
            with suppress(ProcessLookupError):
                os.kill(target.pid, signal.SIGKILL)
        elif not self._asked_to_end:
            raise Fault("the program has ended")

    def _strangers(self) -> set[int]:
        """Processes that the round has made."""
        return self._ground.processes() - self._before.processes

    def _program(self) -> int:
        """The process of the program; 0 where there is none."""
        for pid in self._strangers():
            with suppress(FileNotFoundError, ProcessLookupError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if bytes(BEATING) in words:
                    return pid
        return 0

    def _judge_progress(self, targets: list[Target]) -> None:
        """The watched process works on, soon after the kill; the control's delay is added to the limit."""
        for target in targets:
            if not until(partial(target.beat_since, self._killed_nanos)):
                raise Fault("the target stands still")
            if not until(partial(_second_beats, target, target.second())):
                raise Fault("the target's second thread stands still")
            if target is not self._scene.control:
                self._judge_gap(target.longest_secs)

    def _judge_gap(self, secs: float) -> None:
        control = self._scene.control
        until(lambda: control.beat_since(self._killed_nanos))
        late = max(0.0, secs - control.longest_secs)
        self._kills.latest_secs = max(self._kills.latest_secs, late)
        if late > MOST_SECS:
            raise Fault(
                f"the target was stopped for {secs:.2f} s after the kill, the control for {control.longest_secs:.2f} s"
            )

    def _judge_left(self, target: Target | None) -> None:
        left = self._ground.left(self._before)
        if self._kill.moment == "attaching" and self._kill.victim in (
            "server",
            "sidecar",
            "window",
        ):
            # Files handed to the target stay until the next debugger attaches to it.
            folders = [each for each in left if _HANDED_OVER.fullmatch(each)]
            self._kills.folders.update(folders)
            left = [each for each in left if each not in folders]
        if left:
            raise Fault(f"left behind: {left}")
        self._judge_sockets()
        if target is None or not target.pid:
            return
        if not until(lambda: not target.traced_by()):
            raise Fault(f"left traced: {target.traced_by()}")
        before = self._kills.baseline(target)

        def as_before() -> bool:
            now = target.residue()
            # Compilers and collectors of a JVM start and end threads of their own, and it maps files when it likes.
            more = int(now["threads"][0]) - int(before["threads"][0])
            same = now["descriptors"] == before["descriptors"] and now["files"] == before["files"]
            return same and (more <= 2 if self._kill.way in ("agent", "java passive") else not more)

        if not until(as_before, PATIENCE_SECS):
            raise Fault(f"left in the target: {target.residue()} instead of {before}")

    def _judge_sockets(self) -> None:
        """A killed listener leaves its socket, which the next server removes; no other process leaves anything."""
        new = self._ground.runtime_files() - self._before.runtime
        self._kills.sockets = max(self._kills.sockets, len(self._ground.runtime_files()))
        most = 1 if self._kill.victim in _LISTENS else 0
        if len(new) > most or not all(name.endswith(".sock") for name in new):
            raise Fault(f"left in the runtime folder: {sorted(new)}")

    def _judge_recording(self, path: Path) -> None:
        if not path.exists():
            return  # killed before there was anything to write
        try:
            recording = Recording.open(path)
        except RecordingError as error:
            if path.stat().st_size > 2048:
                raise Fault(f"the recording cannot be opened: {error}") from error
            return  # not even its header
        with recording:
            with FileSource(path) as source:
                report = verify(source)
            if not report.intact:
                raise Fault(f"the recording is damaged: {report}")
            if not len(recording.events):
                return
            times = recording.events["time_nanos"].astype("i8")
            recording.seek(recording.last)
        usual = max([0, *(times[1:] - times[:-1]).tolist()]) / 1e9
        lost = (self._killed_nanos - int(times[-1])) / 1e9 - usual
        if self._kill.moment != "closing":
            self._kills.lost_secs = max(self._kills.lost_secs, lost)
            if lost > MOST_SECS + self._scene.control.longest_secs:
                raise Fault(
                    f"the recording lost {lost:.2f} s, beyond its longest pause of {usual:.2f} s"
                )
