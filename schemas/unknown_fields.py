"""Fields that an envelope holds and no document has: left out, and named to who sent them, with what may be meant."""

from collections.abc import Iterable

from pydantic import BaseModel, Field
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler

from schemas.events import ENVELOPE_FIELDS
from schemas.receipts import UNKNOWN_FIELDS

MAX_NAMED = 10
MAX_NAME_CHARACTERS = 80
MIN_SIMILARITY = 0.8  # `url` is taken for `uri`, `collectoin` for `collection`; `type` and `author` for nothing


class UnknownField(BaseModel):
    """A field that was left out; what describes a document goes under `metadata`."""

    name: str
    suggestion: str | None = Field(None, description="The field that may be meant.")


def name_unknown(names: Iterable[str]) -> list[UnknownField]:
    """The first MAX_NAMED of them, long names cut."""
    return [
        UnknownField(name=name[:MAX_NAME_CHARACTERS], suggestion=suggest_field(name))
        for name, _ in zip(names, range(MAX_NAMED), strict=False)
    ]


def note_unknown(names: Iterable[str]) -> str:
    """The note of a receipt about fields of its record that were left out; empty for none."""
    shown = [f"{field.name!r}{_meant(field.suggestion)}" for field in name_unknown(names)]
    return f"{UNKNOWN_FIELDS}{', '.join(shown)}. What describes a document goes under 'metadata'." if shown else ""


def describe_field(name: str, count: int) -> str:
    """The name, how many envelopes hold it, and what may be meant."""
    return f"{name!r} in {count:,}{_meant(suggest_field(name))}"


def _meant(suggestion: str | None) -> str:
    return f" (is {suggestion!r} meant?)" if suggestion else ""


def suggest_field(name: str) -> str | None:
    """The field of an envelope whose name is nearest, by Jaro-Winkler similarity; None where none is near."""
    found = process.extractOne(
        name[:MAX_NAME_CHARACTERS].casefold(),
        ENVELOPE_FIELDS,
        scorer=JaroWinkler.normalized_similarity,
        score_cutoff=MIN_SIMILARITY,
    )
    return None if found is None else str(found[0])
