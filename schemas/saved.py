"""What callers of the service save, as records of `saved.v1`.

The key of an item is `<caller>/<kind>/<id>`, that of a part of it `<caller>/<kind>/<id>/<part>`; the value is a JSON
object, null where it is deleted. A part without its item is none.
"""

import re
from typing import Literal, NamedTuple, Self, get_args

from schemas.errors import MalformedEvent

SavedKind = Literal["conversation", "cards", "quiz", "map", "path", "question", "summary"]
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class SavedKey(NamedTuple):
    """`part` is None for the item itself."""

    owner: str
    kind: str
    id: str
    part: str | None = None

    @classmethod
    def parse(cls, key: bytes | None) -> Self:
        """Raises MalformedEvent."""
        names = (key or b"").decode(errors="replace").split("/")
        if len(names) not in (3, 4) or names[1] not in get_args(SavedKind) or not all(map(_NAME.fullmatch, names)):
            raise MalformedEvent("bad_key", "The key of a saved item is `<caller>/<kind>/<id>`, and of a part longer.")
        return cls(*names)

    def encode(self) -> bytes:
        """Raises MalformedEvent for names that cannot be in a key."""
        encoded = "/".join(name for name in self if name is not None).encode()
        if self.parse(encoded) != self:
            raise MalformedEvent("bad_key", "The names of a saved item are of letters, digits, dots, dashes.")
        return encoded
