"""A process that stands for a forked one, for who starts programs in another way than `subprocess`: Qt.

    python -I -S tests/forked_command.py -P -m gcspy ps --watch

Has the fork server start the command with its own files, waits for it, and ends as it ends. Loads
as little as it can: it is what is left of the time to start.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

PLACE = "GCSPY_TESTS_FORK_SERVER"
"""Environment variable: the socket of the fork server."""


def main() -> None:
    """Start it, and end as it does."""
    args = [sys.executable, *sys.argv[1:]]
    request = {
        "args": args,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "new session": False,
        "waited for": True,
    }
    data = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(os.environ[PLACE])
        except (KeyError, OSError):
            os.execv(sys.executable, args)
        socket.send_fds(sock, [len(data).to_bytes(4, "little")], [0, 1, 2])
        sock.sendall(data)
        pid = int.from_bytes(sock.recv(4), "little")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _frame: os.kill(pid, number))
        for fd in (0, 1):
            os.close(fd)
        code = int.from_bytes(sock.recv(4), "little", signed=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
