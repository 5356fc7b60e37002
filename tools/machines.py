"""Two machines in Linux namespaces on this one, and the cable between them.

They need root's rights, `unshare` and `nsenter` (util-linux) and `ip` (iproute2).
"""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen

from t2t_repro.system.errors import UserError

NAMES = "node1", "node2"
WAYS = "down", "drop"
"""Ways to cut the cable: an interface that is down, which each side may notice, and
packets that disappear, which neither side can notice."""

_ADDRESSES = "10.77.0.1", "10.77.0.2"
# A unicast address without an owner: the receiver's kernel drops the packet.
_NOBODY = "02:00:00:00:00:99"
_BEGIN = (
    'mount --bind "$1" /etc/hosts && hostname "$2" && ip link set lo up && echo ready '
    "&& exec cat"
)
_NAMESPACES = ("--net", "--uts", "--mount", "--pid")


class Machine:
    """Network, host name, hosts file and processes of one machine.

    The first process of the machine waits for the end of a pipe. The kernel kills all
    others with it, so that nothing survives this process, however it ends.

    Args:
        name: Host name.
        hosts: File that takes the place of ``/etc/hosts``.
    """

    def __init__(self, name: str, hosts: Path) -> None:
        self.name = name
        command = ["unshare", *_NAMESPACES, "--fork", "--mount-proc", "sh", "-c"]
        command += [_BEGIN, "sh", str(hosts), name]
        # Ctrl-C is for the harness.
        self._first = Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        assert self._first.stdout is not None
        if self._first.stdout.readline() != b"ready\n":
            raise UserError("cannot create Linux namespaces; run the command as root")
        pid = self._first.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        self.process = int(children)

    def close(self) -> None:
        """Kills all processes of the machine."""
        self._first.communicate()  # Closes its standard input.

    def kill(self) -> None:
        """Kills all processes of the machine except the first one."""
        self.run("sh", "-c", "kill -KILL -1 || true")  # It fails if there are none.

    def command(self, *words: str) -> list[str]:
        """Returns the command that runs another command on this machine."""
        return ["nsenter", f"--target={self.process}", *_NAMESPACES, "--", *words]

    def run(self, *words: str) -> str:
        """Runs a command; returns its output or raises UserError with it."""
        done = subprocess.run(self.command(*words), stdout=PIPE, stderr=STDOUT)
        output = done.stdout.decode(errors="replace").strip()
        if done.returncode:
            raise UserError(f"{' '.join(words)}: {output or done.returncode}")
        return output


class Cable:
    """Connection between two machines."""

    def __init__(self, *machines: Machine) -> None:
        self._machines = machines
        first, second = (f"eth0 netns {machine.process}" for machine in machines)
        link = f"ip link add name {first} type veth peer name {second}"
        subprocess.run(link.split(), check=True)
        for machine, address in zip(machines, _ADDRESSES, strict=True):
            machine.run("ip", *f"address add {address}/24 dev eth0".split())
        self.mend()

    def cut(self, way: str, seconds: float = 0) -> None:
        """Cuts the cable in one of `WAYS`, and mends it after some seconds; 0: never.

        A command of the harness that waits does not delay the repair.
        """
        if seconds:
            threading.Timer(seconds, self.mend).start()
        if way == "down":
            self._machines[1].run("ip", "link", "set", "eth0", "down")
            return
        for machine, peer in zip(self._machines, reversed(_ADDRESSES), strict=True):
            wrong = f"neighbour replace {peer} lladdr {_NOBODY} dev eth0 nud permanent"
            machine.run("ip", *wrong.split())

    def mend(self) -> None:
        """Restores the connection."""
        for machine in self._machines:
            machine.run("ip", "link", "set", "eth0", "up")
            machine.run("ip", "neighbour", "flush", "dev", "eth0", "nud", "permanent")


@contextmanager
def connect(folder: Path) -> Iterator[tuple[Machine, Machine, Cable]]:
    """Yields two machines and their cable; kills all their processes at the end.

    Args:
        folder: Folder for the hosts file, which is created.
    """
    require("unshare", "nsenter", "ip")
    folder.mkdir(parents=True, exist_ok=True)
    hosts = folder / "hosts"
    lines = [f"{a} {n}\n" for a, n in zip(_ADDRESSES, NAMES, strict=True)]
    hosts.write_text("127.0.0.1 localhost\n" + "".join(lines), encoding="utf-8")
    with ExitStack() as stack:
        machines = []
        for name in NAMES:
            machines.append(Machine(name, hosts))
            stack.callback(machines[-1].close)
        yield machines[0], machines[1], Cable(*machines)


def require(*programs: str) -> None:
    """Raises UserError if a program is missing."""
    for program in programs:
        if shutil.which(program) is None:
            raise UserError(f"{program} is not installed")
