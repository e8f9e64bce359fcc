"""Where the bytes of a group's calls went."""

import dataclasses


@dataclasses.dataclass
class Traffic:
    """Bytes of the tensors of all calls of this rank: each call's, whatever the number of ranks."""

    card: int = 0  #: through the card
    calls: int = 0  #: of them
    gloo: dict[str, int] = dataclasses.field(default_factory=dict)  #: by Gloo, by the name of the call

    def by_card(self, size: int) -> None:
        self.card += size
        self.calls += 1

    def by_gloo(self, call: str, size: int) -> None:
        self.gloo[call] = self.gloo.get(call, 0) + size

    def add(self, other: "Traffic") -> None:
        """Adds the bytes of another group."""
        self.card += other.card
        self.calls += other.calls
        for call, size in other.gloo.items():
            self.by_gloo(call, size)

    def __str__(self) -> str:
        other = sum(self.gloo.values())
        share = f" ({100 * self.card / (self.card + other):.4g} %)" if self.card else ""
        text = f"{_bytes(self.card)} of {_bytes(self.card + other)}{share} through the card, in {self.calls} calls"
        rest = sorted(((size, call) for call, size in self.gloo.items() if size), reverse=True)
        return text + (f"; by Gloo: {', '.join(f'{call} {_bytes(size)}' for size, call in rest)}" if rest else "")


def _bytes(count: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"
