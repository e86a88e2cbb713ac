"""A fact of a sentence, and the times that facts are of."""

import re
from typing import NamedTuple

from indexer.extraction.lexicon import MONTHS
from indexer.extraction.prose.noun_phrases import NAME, NounPhrase

TYPED_CONFIDENCE = 0.8
DEFINITE_CONFIDENCE = 0.7  # where an end is not a name
LEMMA_CONFIDENCE = 0.5  # of predicates outside the list

_MONTH = rf"(?:{'|'.join(sorted((month.capitalize() for month in MONTHS), key=lambda word: (-len(word), word)))})\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
TIME = re.compile(rf"(?:{_DAY} )?(?:{_MONTH}(?: {_DAY})?,? )?[12]\d{{3}}\b(?![\w/:-]|\.\d)")


class Fact(NamedTuple):
    """What a sentence states: the surfaces of its ends and of further roles, as (role, surface)."""

    predicate: str
    subject: str
    object: str
    confidence: float
    is_definition: bool = False
    more: tuple[tuple[str, str], ...] = ()


def confidence_of(*ends: NounPhrase) -> float:
    """Of a fact with a typed predicate."""
    return TYPED_CONFIDENCE if all(end.grade() == NAME for end in ends) else DEFINITE_CONFIDENCE
