"""Holes in what policies see: about a tenth of the samples, in pieces of twenty minutes, the same for every policy and run."""

import math
from hashlib import blake2b
from typing import Final

HOLE_S: Final = 1200.0
HIDDEN_SHARE: Final = 0.10
SEED: Final = 20_260_101
"""Decides which pieces are hidden; any other number is as good."""


class Holes:
    """Which samples are hidden. A pod's time is cut into pieces of one hole each, from an offset of its own."""

    def __init__(self, *, step_s: float, seed: int = SEED, share: float = HIDDEN_SHARE) -> None:
        self._length = max(1, math.ceil(HOLE_S / step_s))
        self._seed = seed
        self._limit = int(share * 2**32)
        self._known: dict[str, tuple[int, int, bool]] = {}

    def hides(self, pod: str, index: int) -> bool:
        """Whether the pod's samples of this step are hidden."""
        offset, piece, hidden = self._known.get(pod) or (self._draw(pod, "offset") % self._length, -1, False)
        now = (index + offset) // self._length
        if now != piece:
            hidden = self._draw(pod, str(now)) < self._limit
            self._known[pod] = (offset, now, hidden)
        return hidden

    def _draw(self, pod: str, what: str) -> int:
        digest = blake2b(f"{self._seed}/{pod}/{what}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big")
