"""A CPython whose stub is silent, drips or does not wait: each ends in one line, soon, and the program goes on."""

from __future__ import annotations

import pytest
from gcspy_drivers.cooperative import line
from gcspy_drivers.kit import stubbed_driver
from gcspy_protocol.errors import TargetError

from tests.drivers.cpython.stubbed import StubbedTarget, Watching

LIAR = """
import array, ctypes, fcntl, mmap, struct
libc = ctypes.CDLL(None)
lie, line = sys.argv[3], socket.socket(fileno=int(sys.argv[2]))
def drip(packet):
    for byte in packet:
        line.send(bytes([byte]), socket.MSG_NOSIGNAL)
        time.sleep(0.01)
hello = stub_module.HELLO.pack(stub_module.MAGIC, stub_module.PROTOCOL, 0, os.getpid(), 0)
event = stub_module.EVENT.pack(0, 2, threading.get_native_id(), 1, time.monotonic_ns(), 0, 0)
timer = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC)
memory = os.memfd_create("liar", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
os.truncate(memory, mmap.PAGESIZE)
fcntl.fcntl(memory, 1033, 2)  # F_ADD_SEALS, F_SEAL_SHRINK
late = struct.pack("<4q", 0, 0, 1000, 0)
try:
    if lie == "drips":
        drip(hello)
    elif lie != "silent":
        line.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [timer, memory]))])
    if lie == "drips an event":
        drip(event)
    elif lie == "does not wait":
        line.send(event, socket.MSG_NOSIGNAL)
        line.setblocking(False)
        while True:
            libc.timerfd_settime(timer, 0, late, None)  # running out it would end the waiting
            try:
                if not line.recv(1):
                    break
            except BlockingIOError:
                pass
    while line.recv(1):
        pass
except OSError:
    pass
say("goes on")
"""
_SECS = 0.3


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ("silent", "its stub did not answer within 0.3 s"),
        ("drips", r"not a GCspy stub \(1 bytes\)"),
        ("drips an event", "the stub is no longer in the program"),
        ("does not wait", r"says that it waits, and its thread \d+ has not slept for 0.3 s"),
    ],
)
def test_each_lie_ends_in_one_line_and_the_program_goes_on(
    own_python: str, lie: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lie == "silent":
        monkeypatch.setattr(stubbed_driver, "HELLO_SECS", _SECS)
    if lie == "does not wait":
        monkeypatch.setattr(line, "_LONGEST_REST_SECS", _SECS)
    with StubbedTarget(own_python, LIAR, lie) as target:
        with pytest.raises(TargetError, match=said) as raised, Watching(target) as watching:
            watching.serve()
        assert "\n" not in str(raised.value)
        assert target.read_line() == '"goes on"'
