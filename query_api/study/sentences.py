"""Which sentences are self-contained: understood without those around them."""

import re

LEAST_WORDS, MOST_WORDS = 6, 40

_BEGINS = re.compile(r"[A-Z0-9\"“À-ÖØ-Þ]")
_ENDS = re.compile(r"[.!][\"”’']?$")
_POINTS_BACK = re.compile(
    r"(?:[^a-z]*\b(?:it|its|he|his|she|her|they|their|here|there|both|each|some|others?|another|such|so|then|thus|hence|"
    r"however|therefore|moreover|furthermore|instead|also|but|and|or|yet|otherwise|meanwhile|similarly|first|second|"
    r"note|consider|(?:\w+ ){0,2}(?:days?|weeks?|months?|years?|time|point) (?:later|earlier|before)|"
    r"(?:for|in) (?:example|instance|addition|contrast|particular)|as (?:such|a result)|"
    r"(?:\w+ )?(?:the|that) (?:same|other|second|first|next|previous|following|result|reason))\b)"
    r"|.*\b(?:th(?:is|ese|ose)|we|our|us|i|my|me|you|your|the (?:former|latter|above|following)|aforementioned|however|"
    r"(?:is|are|was|were|has|have|had) (?:also|then|thus|therefore)|"
    r"(?:as|see) (?:above|below|follows)|see also|above|below)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKUP = re.compile(
    r"[`{}|\\<>=*_~]|::|\(\)|\w\.\w+\(|https?:|www\.|\[\d|^\W*[-•]|^\(?\w{1,2}[.)] |^[\w -]{1,40}: |:$|"
    r"[a-z]{2}[.!?] [A-Z]"
)
_COMMON_SUBJECT = re.compile(r"(?:The|That|A certain) (?=[a-z])")
_PAIRS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"))


def is_self_contained(sentence: str) -> bool:
    """Whether it is a whole sentence of prose that says what it is about: none that points back or at its place in the
    text, no heading, item of a list, row or code."""
    return (
        LEAST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and _BEGINS.match(sentence) is not None
        and _ENDS.search(sentence) is not None
        and _POINTS_BACK.match(sentence) is None
        and _MARKUP.search(sentence) is None
        and _COMMON_SUBJECT.match(sentence) is None
        and sentence.count('"') % 2 == 0
        and all(sentence.count(opening) == sentence.count(closing) for opening, closing in _PAIRS)
    )
