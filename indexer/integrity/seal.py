"""Manifests that carry the checksum of their other fields, so that a changed one is known when it is read."""

import hashlib
from typing import Self

import msgspec


class Sealed(msgspec.Struct, frozen=True):
    """Mixed into a manifest, whose last field is `sealed: str = ""`."""

    def seal(self) -> Self:
        """With the checksum of the other fields."""
        fields = msgspec.json.encode(msgspec.structs.replace(self, sealed=""))
        return msgspec.structs.replace(self, sealed=hashlib.sha256(fields).hexdigest()[:32])
