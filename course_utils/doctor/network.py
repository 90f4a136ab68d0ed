"""Whether ranks on this machine can meet, and by which names."""

import os
import socket
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils.doctor.finding import Finding
from course_utils.launcher.request import LOOPBACK_INTERFACE

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0  # seconds
SLOW = 2.0  # seconds
HELLO = b"a rank"


@dataclass(frozen=True)
class Network:
    """How this machine reaches itself.

    Attributes:
        broken: why one process does not reach another over the loopback; '' if it does.
        name: the host name.
        address: what it resolves to; None if to nothing.
        ours: whether that is an address of this machine.
        seconds: what it took to find out.
        localhost: what `localhost` resolves to; None if to nothing.
        proxies: variables that send even what is for this machine to a proxy.
    """

    broken: str
    name: str
    address: str | None
    ours: bool
    seconds: float
    localhost: str | None
    proxies: tuple[str, ...]


def look() -> Iterator[Finding]:
    """Read the facts, and say what they mean."""
    yield from findings(read())


def read() -> Network:
    """The facts about this machine's network."""
    name, start = socket.gethostname(), time.monotonic()
    address = resolved(name)
    return Network(
        broken=why_broken(),
        name=name,
        address=address,
        ours=address is not None and is_ours(address),
        seconds=time.monotonic() - start,
        localhost=resolved("localhost"),
        proxies=proxies(),
    )


def why_broken() -> str:
    """Why a message over the loopback does not arrive; '' if it does."""
    try:
        socket.if_nametoindex(LOOPBACK_INTERFACE)
        with socket.create_server((LOOPBACK, 0)) as server:
            server.settimeout(PATIENCE)
            with socket.create_connection(server.getsockname(), PATIENCE) as sender:
                sender.sendall(HELLO)
                receiver, _ = server.accept()
                with receiver:
                    receiver.settimeout(PATIENCE)
                    arrived = receiver.recv(len(HELLO))
    except OSError as error:
        return f"{LOOPBACK} does not answer: {error}"
    return "" if arrived == HELLO else f"what is sent over {LOOPBACK} does not arrive"


def resolved(name: str) -> str | None:
    """The address of a host name; None without one."""
    try:
        return socket.gethostbyname(name)
    except OSError:
        return None


def is_ours(address: str) -> bool:
    """Whether this machine has that address."""
    try:
        socket.create_server((address, 0)).close()
    except OSError:
        return False
    return True


def proxies() -> tuple[str, ...]:
    """The variables that name a proxy, if they do not leave this machine's own addresses out."""
    known = urllib.request.getproxies_environment()
    if all(urllib.request.proxy_bypass_environment(n, known) for n in (LOOPBACK, "localhost")):
        return ()
    return tuple(sorted(v for v in os.environ if v.lower() in ("http_proxy", "all_proxy")))


def findings(facts: Network) -> Iterator[Finding]:
    """What the facts mean for the labs."""
    if facts.broken:
        remedy = "ranks meet over it: allow it in the firewall, or bring up the interface "
        yield Finding("problem", "loopback", facts.broken, remedy + LOOPBACK_INTERFACE)
    else:
        yield Finding("ok", "loopback", f"a process reaches another over {LOOPBACK}")
    yield host_name(facts)
    if not (facts.localhost or "").startswith("127."):
        yield Finding(
            "note",
            "localhost",
            f"is {facts.localhost or 'unknown'}",
            f"add the line '{LOOPBACK} localhost' to /etc/hosts: a torchrun by hand meets there",
        )
    if facts.proxies:
        yield Finding(
            "note",
            "proxy",
            f"{' and '.join(facts.proxies)} would take what is for this machine, too",
            f"export no_proxy={LOOPBACK},localhost${{no_proxy:+,$no_proxy}}: else some browsers "
            "and tools do not reach JupyterLab",
        )


def host_name(facts: Network) -> Finding:
    """What the machine's name leads to: a launch needs no name, several machines and torch do."""
    line = f"add the line '127.0.1.1 {facts.name}' to /etc/hosts"
    only = "only several machines, and a torchrun by hand, need it"
    if facts.address is None:
        return Finding("note", "host name", f"{facts.name} has no address; {only}", line)
    found = f"{facts.name} is {facts.address}"
    if not facts.ours:
        return Finding("note", "host name", f"{found}, which is another machine's; {only}", line)
    if facts.seconds > SLOW:
        return Finding("note", "host name", f"{found}; it took {facts.seconds:.1f} s", line)
    return Finding("ok", "host name", found)
