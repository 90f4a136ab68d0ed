"""A network card whose frames leave some time later.

Linux can delay packets with netem, but the kernels of many clouds and of WSL come without it. So
the frames pass this process: a host sends into a virtual card (TAP), here they wait, and then they
leave by the link. Like a real card it takes pieces of up to 64 kB, which the kernel cuts into
packets only where they leave, so few frames pass here.
"""

import contextlib
import fcntl
import os
import socket
import struct
import threading
import time
import traceback
from collections import deque

from course_utils.links import TUN
from nbtorchrun.worker import guards

# include/uapi/linux: if_tun.h, if_packet.h
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
KIND = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
LARGE = 0x01 | 0x02 | 0x04  # TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6
ETH_P_ALL, SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 0x0003, 263, 15, 23
LONGEST = 2**17  # bytes of a frame and its header, at most


def start(card: str, link: str, delay: float) -> None:
    """Make `card`; what is sent into it leaves by the card `link` after `delay` seconds.

    What comes in by the link is handed on at once. A process does this until the caller ends.
    """
    tap = os.open(TUN, os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", card.encode(), KIND))
    fcntl.ioctl(tap, TUNSETOFFLOAD, LARGE)
    host = os.getpid()
    if os.fork():
        os.close(tap)
        return
    guards.die_with_parent(host)
    try:
        wire, late, came = _wire(link), deque(), threading.Semaphore(0)
        threading.Thread(target=_hand_on, args=(wire, tap), daemon=True).start()
        threading.Thread(target=_take, args=(tap, late, came, delay), daemon=True).start()
        _send(wire, late, came)
    except BaseException:
        traceback.print_exc()  # into the hosts' log
    os._exit(1)  # this fork must not go on as the host


def _wire(link: str) -> socket.socket:
    """All frames of the card `link`, with the header that says how to cut large ones."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    wire.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    wire.bind((link, ETH_P_ALL))
    return wire


def _hand_on(wire: socket.socket, tap: int) -> None:
    """Give the host what arrives."""
    while True:
        frame = wire.recv(LONGEST)
        with contextlib.suppress(OSError):  # the host's card is not up yet
            os.write(tap, frame)


def _take(
    tap: int, late: deque[tuple[float, bytes]], came: threading.Semaphore, delay: float
) -> None:
    """Note what the host sends, and when it shall leave."""
    while True:
        frame = os.read(tap, LONGEST)
        late.append((time.monotonic() + delay, frame))
        came.release()


def _send(wire: socket.socket, late: deque[tuple[float, bytes]], came: threading.Semaphore) -> None:
    """Send each frame when its time has come."""
    while True:
        came.acquire()
        due, frame = late.popleft()
        time.sleep(max(0.0, due - time.monotonic()))
        with contextlib.suppress(OSError):  # the link is full: dropped, as on any link
            wire.send(frame)
