"""An encoder without a model, for tests and for measuring everything but the model."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from schemas.settings import EmbeddingProvider


class HashingEncoder:
    """Feature hashing of words (Weinberger et al. 2009, section 2): no meaning beyond shared words."""

    provider: EmbeddingProvider = "hashing"
    model = "hashing"
    digest = "hashing-1"
    dimension = 384
    batch_texts: int | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for number, text in enumerate(texts):
            row = vectors[number]
            for word in text.casefold().split():
                bits = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
                row[bits % self.dimension] += 1.0 if bits >> 63 else -1.0
            norm = float(np.linalg.norm(row))
            if norm:
                vectors[number] = row / norm
            else:
                row[0] = 1.0
        return vectors
