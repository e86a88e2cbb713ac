"""How many members a JSON text has, counted over its bytes without making anything of it.

A megabyte of `{}` is 350,000 objects, and 60 times its size once they are made. Decoders count after they have decoded,
so this counts before. It runs over blocks with numpy, which costs the same whatever the bytes are (about 5 ms a MiB)
and lets other threads run meanwhile.
"""

from typing import NamedTuple

from query_api.errors import ApiProblem

BLOCK_BYTES = 256 * 1024
_QUOTE, _COMMA, _BACKSLASH = b'",\\'
_OPENING = b"[{"
_CLOSING = b"]}"


class JsonSize(NamedTuple):
    """`members`: elements of lists and fields of objects, of the whole text, at most a few too many (empty lists and
    objects count as one). `top`: those of the outermost list or object alone."""

    members: int
    top: int


def json_size(text: bytes | bytearray, most: int) -> JsonSize:
    """The size of a JSON text; counting stops once there are more than `most` members. Of what is no JSON, the size as
    far as it is some, and any number after."""
    import numpy as np  # not at the start of the service: the port is to be open before

    members = top = depth = backslashes = 0
    inside = False  # a string
    for start in range(0, len(text), BLOCK_BYTES):
        block = np.frombuffer(text, np.uint8, min(BLOCK_BYTES, len(text) - start), start)
        quotes = block == _QUOTE
        escapes = block == _BACKSLASH
        if backslashes or escapes.any():
            at = np.arange(len(block), dtype=np.int32)
            others = np.where(escapes, np.int32(-1 - backslashes), at)
            before = np.empty_like(at)  # where the last byte that is no backslash stands, before each
            before[0] = -1 - backslashes
            np.maximum.accumulate(others[:-1], out=before[1:])
            np.maximum(before, before[0], out=before)
            quotes &= (at - before) % 2 == 1
            backslashes = int(len(block) - 1 - max(before[-1], others[-1])) % 2
        strings = np.logical_xor.accumulate(quotes) ^ inside
        inside = bool(strings[-1])
        outside = ~strings
        commas = (block == _COMMA) & outside
        opening = ((block == _OPENING[0]) | (block == _OPENING[1])) & outside
        closing = ((block == _CLOSING[0]) | (block == _CLOSING[1])) & outside
        depths = np.cumsum(opening.astype(np.int8) - closing.astype(np.int8), dtype=np.int32) + depth
        depth = int(depths[-1])
        members += int(np.count_nonzero(commas)) + int(np.count_nonzero(opening))
        top += int(np.count_nonzero(commas & (depths == 1)))
        if members > most:
            break
    return JsonSize(members, top + 1 if members else 0)


def check_members(size: JsonSize, most: int) -> None:
    """Raises ApiProblem 413 for a JSON text with more than `most` members."""
    if size.members > most:
        raise ApiProblem(
            413,
            "Request too large",
            f"The lists and objects of the body have more than {most:,} members, all counted. Send less at once.",
            members={"reason": "too_many_members"},
        )
