"""A substitute for `python` whose processes share one import of TensorFlow.

Importing TensorFlow takes four seconds, most of the time of a small command. A server
imports it and two other slow libraries once and forks for each program, which runs as
`python -m`, `python -c` or `python file.py` would, with its own streams, folder,
variables and signals.

Programs that test the import itself, or that must not find TensorFlow imported, use
`sys.executable`. The substitute also starts it for other options, and for variables
that TensorFlow reads during the import.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PYTHON = sys.executable
_CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
fixed = {{k: v for k, v in os.environ.items() if k.startswith({names!r})}}
arguments, variables = sys.argv[1:], dict(os.environ)
begins = arguments[0] if arguments else "-"
runs = begins in ("-m", "-c") or not begins.startswith("-")
if not runs or fixed != {fixed!r}:
    os.execv({python!r}, [{python!r}, *arguments])
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
ignored = [s for s in (signal.SIGINT,) if signal.getsignal(s) == signal.SIG_IGN]
names = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
# Until the program runs, signals wait.
signal.pthread_sigmask(signal.SIG_BLOCK, names)
job = json.dumps([arguments, os.getcwd(), variables, list(map(int, ignored))]).encode()
socket.send_fds(connection, [len(job).to_bytes(8, "big")], [0, 1, 2])
connection.sendall(job)
for stream in (0, 1, 2):
    os.close(stream)
child = int(connection.recv(8, socket.MSG_WAITALL))
for name in names:
    signal.signal(name, lambda number, _: os.kill(child, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, names)
status = int(connection.recv(8, socket.MSG_WAITALL) or b"1")
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""
_SERVER = "from tests import fork_server; fork_server.serve(); fork_server.execute()"
_FIXED = ("TF_CPP_", "TF_ENABLE_", "LD_", "MALLOC_", "GLIBC_", "OMP_", "PYTHONHASHSEED")
_started: list[str] = []
_job: list[str] = []


def python() -> str:
    """Returns the path of the substitute; starts the server at the first call."""
    if not _started:
        folder = tempfile.TemporaryDirectory(prefix="forks")
        path, address = Path(folder.name) / "python", f"{folder.name}/socket"
        fixed = {k: v for k, v in os.environ.items() if k.startswith(_FIXED)}
        text = _CLIENT.format(
            python=_PYTHON, address=address, names=_FIXED, fixed=fixed
        )
        path.write_text(text, encoding="utf-8")
        path.chmod(0o700)
        server = subprocess.Popen(
            [_PYTHON, "-c", _SERVER, address, str(path)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        atexit.register(folder.cleanup)
        # Waiting for programs that failed tests have left could take forever.
        atexit.register(server.wait)
        atexit.register(server.kill)
        _started.append(str(path))
    return _started[0]


def serve() -> None:
    """Imports libraries and forks for each connection; returns in the new process.

    The server ends with the process that has started it.
    """
    import sacremoses  # noqa: F401
    import tensorflow  # noqa: F401
    import tensorflow_text  # noqa: F401

    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    os.write(1, b"ready\n")
    while True:
        ready, _, _ = select.select([0, listener], [], [])
        if 0 in ready:
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            break
        connection.close()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
    listener.close()
    os.setsid()
    _watch(connection)


def _watch(connection: socket.socket) -> None:
    """Starts the program of a connection and waits for it; returns in its process.

    A killed client ends the program.
    """
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    job = b""
    while len(job) < int.from_bytes(size, "big"):
        job += connection.recv(1 << 16)
    arguments, folder, variables, ignored = json.loads(job)
    if child := os.fork():
        for stream in streams:
            os.close(stream)
        connection.sendall(b"%8d" % child)
        process = os.pidfd_open(child)
        ready, _, _ = select.select([process, connection], [], [])
        if process not in ready:
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if process in ready:
            connection.sendall(b"%8d" % status)
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({"TF2_BEHAVIOR": "1", **variables})
    _job.extend(arguments)


def execute() -> None:
    """Runs the program as `python` would, in the process that `serve` has forked."""
    sys.executable = sys.argv[2]
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (
        open(number, "w", size, encoding, closefd=False)  # noqa: SIM115
        for number, size in ((1, 1 if os.isatty(1) else -1), (2, 1))
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    kind, *rest = _job
    kept = [path for path in sys.path if path not in ("", str(ROOT))]
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    del sys.modules["tests.fork_server"], sys.modules["tests"]
    if kind in ("-m", "-c"):
        sys.path[:] = [os.getcwd() if kind == "-m" else "", *paths, *kept]
        sys.argv = [kind, *rest[1:]]
        if kind == "-m":
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            names = sys.modules["__main__"].__dict__
            names.pop("fork_server")
            exec(compile(rest[0], "<string>", "exec"), names)
    else:
        sys.path[:] = [str(Path(kind).resolve().parent), *paths, *kept]
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")
