"""A parameter server in TCP, to compare OSP with. It is ours, and small; nothing of the paper's is in it.

Each rank serves a shard of the parameters and works too. So a worker pushes (N-1)/N of the gradient and pulls
(N-1)/N of the parameters over its own link: as many bytes as in a ring all-reduce. One server for all shards
would need N times the time on an equal link.

BSP: a server replies when every rank's gradient has arrived and the mean is applied. ASP: it applies each
gradient at once, divided by N, and replies. Both apply plain SGD.
"""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor


class Shard:
    """A server's part of the parameters: float32, shape (elements,)."""

    def __init__(self, parameters: Tensor, ranks: int, lr: float, synchronous: bool) -> None:
        self._parameters = parameters.clone()
        self._ranks = ranks
        self._lr = lr
        self._synchronous = synchronous
        self._sum = torch.zeros_like(parameters)
        self._arrived = 0
        self._step = 0
        self._changed = threading.Condition()

    def push(self, gradient: Tensor) -> Tensor:
        """Applies a rank's gradient, and returns a copy of the parameters. With BSP it waits for all ranks."""
        with self._changed:
            if not self._synchronous:
                self._parameters.add_(gradient, alpha=-self._lr / self._ranks)
                return self._parameters.clone()
            self._sum += gradient
            self._arrived += 1
            if self._arrived == self._ranks:
                self._parameters.add_(self._sum, alpha=-self._lr / self._ranks)
                self._sum.zero_()
                self._arrived = 0
                self._step += 1
                self._changed.notify_all()
            else:
                step = self._step
                self._changed.wait_for(lambda: self._step > step)
            return self._parameters.clone()


class ParameterServer:
    """One rank: the server of a shard, and a worker.

    addresses are host and port of all ranks. A rank listens at its own and connects to all others; close ends
    both. parameters are those that training starts from, equal on all ranks: float32, shape (elements,).
    """

    def __init__(
        self, rank: int, addresses: list[tuple[str, int]], parameters: Tensor, lr: float, *, synchronous: bool
    ) -> None:
        self._rank = rank
        self._ranks = len(addresses)
        shards = parameters.tensor_split(self._ranks)
        self._shard = Shard(shards[rank], self._ranks, lr, synchronous)
        listener = socket.create_server(addresses[rank], backlog=self._ranks)
        others = [r for r in range(self._ranks) if r != rank]
        # A connection is complete before its server accepts it, so no rank waits for another one's accept.
        self._peers = {r: _connect(addresses[r]) for r in others}
        for _ in others:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection, shards[rank].numel()), daemon=True).start()
        listener.close()
        self._pool = ThreadPoolExecutor(self._ranks)

    def exchange(self, gradient: Tensor) -> Tensor:
        """Pushes a gradient to all shards, and returns the parameters: float32, shape (elements,).

        Errors: ConnectionError if another rank's process has ended.
        """
        shards = [shard.contiguous() for shard in gradient.tensor_split(self._ranks)]
        return torch.cat(list(self._pool.map(self._exchange, range(self._ranks), shards)))

    def close(self) -> None:
        """Closes the connections to the other ranks. Call it when all ranks are done."""
        self._pool.shutdown()
        for peer in self._peers.values():
            peer.close()

    def _exchange(self, server: int, gradient: Tensor) -> Tensor:
        if server == self._rank:
            return self._shard.push(gradient)
        peer = self._peers[server]
        peer.sendall(_bytes(gradient))
        parameters = torch.empty_like(gradient)
        if not _receive(peer, parameters):
            raise ConnectionError(f"rank {server} has ended")
        return parameters

    def _serve(self, connection: socket.socket, elements: int) -> None:
        gradient = torch.empty(elements)
        with connection:
            while _receive(connection, gradient):
                connection.sendall(_bytes(self._shard.push(gradient)))


def _connect(address: tuple[str, int]) -> socket.socket:
    """Connects to a server that may not listen yet. ConnectionRefusedError after a minute."""
    end = time.monotonic() + 60
    while True:
        try:
            connection = socket.create_connection(address)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _bytes(tensor: Tensor) -> memoryview:
    return memoryview(tensor.numpy()).cast("B")


def _receive(connection: socket.socket, tensor: Tensor) -> bool:
    """Fills a tensor. False at the end of the connection."""
    view = _bytes(tensor)
    while view:
        count = connection.recv_into(view)
        if not count:
            return False
        view = view[count:]
    return True
