"""The window of a job in a congested network."""

import socket
import struct
import subprocess
import threading

import numpy as np
import pytest
import tributary

DATA, ASK, RESULT = 1, 2, 8  # kinds, as PACKET.md numbers them
CE = 3
# Chunks. Each round trip of marks halves the window, so SETTLED is more than 64 + 32 + ... + 2.
WINDOW, SETTLED, MANY = 64, 200, 8


class Network:
    """A relay before a card, which marks whatever leaves the card.

    After SETTLED results it keeps the next ones until MANY chunks are in flight. If asks is set, it keeps
    them at most until the host asks for one of them: a host with a small window then sends no more.
    """

    asks = False

    def __init__(self, card: tuple[str, int]):
        self.host, self.card = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
        self.host.bind(("127.0.0.1", 0))
        self.host.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, CE)
        self.card.connect(card)
        self.name = f"udp:127.0.0.1:{self.host.getsockname()[1]}"
        self.sent, self.came = set(), set()  # VIDs of data, and of results that left
        self.kept, self.in_flight, self.peer = [], None, None
        self.lock = threading.Lock()
        for forward in self.to_card, self.to_host:
            threading.Thread(target=forward, daemon=True).start()

    def to_card(self):
        while True:
            packet, self.peer = self.host.recvfrom(1 << 16)
            with self.lock:
                kind, vid = self.header(packet)
                if kind == DATA:
                    self.sent.add(vid)
                in_flight = len(self.sent) - len(self.came)
                if self.waits() and (in_flight >= MANY or self.asks and kind == ASK and vid not in self.came):
                    self.in_flight = min(in_flight, MANY)
                    for result in self.kept:
                        self.leave(result)
            self.card.send(packet)

    def to_host(self):
        while True:
            packet = self.card.recv(1 << 16)
            with self.lock:
                if self.waits():
                    self.kept.append(packet)
                else:
                    self.leave(packet)

    def leave(self, packet):
        kind, vid = self.header(packet)
        if kind == RESULT:
            self.came.add(vid)
        self.host.sendto(packet, self.peer)

    def waits(self):
        return len(self.came) >= SETTLED and self.in_flight is None

    @staticmethod
    def header(packet):
        return packet[0] >> 4, struct.unpack_from("<I", packet, 8)[0]


@pytest.fixture
def network(command):
    """A congested network before a card of two workers."""
    card = subprocess.Popen(
        [command, "sim", f"cpu:workers=2,chunk=16,window={WINDOW}", "-listen", "udp:127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    _, host, port = card.stdout.readline().strip().split(":")
    yield Network((host, int(port)))
    card.terminate()
    card.communicate(timeout=60)


@pytest.mark.parametrize(("fixed", "in_flight"), [(True, MANY), (False, 1)], ids=["fixed", "congested"])
def test_fixed_window(network, fixed, in_flight):
    """Many chunks are in flight with a fixed window alone."""
    network.asks = not fixed
    arrays = [np.arange(400 * 16, dtype=np.float32) * factor for factor in (1, 2)]
    with tributary.open(network.name, fixed_window=fixed) as card, card.job() as job:
        assert (job.reduce(arrays) == 3 * arrays[0]).all()
    assert network.in_flight == in_flight
