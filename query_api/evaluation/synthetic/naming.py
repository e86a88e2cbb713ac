"""What a document is called, and whether a text calls it that or gives it away."""

import re
from functools import lru_cache

from query_api.evaluation.synthetic.reading import IndexedDocument
from query_api.evaluation.synthetic.vocabulary import words

LEAST_ALIKE = 4

_LEADING_NAME = re.compile(r"^\W*[–—:-]\s*")


def described(document: IndexedDocument) -> str:
    """The document's title without a name it begins with: "PEP 2 – New Modules" is described by "New Modules"."""
    for name in document.names[1:]:
        if document.title.lower().startswith(name.lower()) and len(name) < len(document.title):
            rest = _LEADING_NAME.sub("", document.title[len(name) :])
            if rest != document.title[len(name) :] and rest:
                return rest
    return document.title


@lru_cache(maxsize=100_000)
def whole(name: str) -> re.Pattern[str]:
    """The name as whole words, in any case, blanks as they come."""
    spaced = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!\w){spaced}(?!\w)", re.IGNORECASE)


def quotes(document: IndexedDocument, title: str) -> bool:
    return whole(title).search(document.text) is not None


def asks_for(last: IndexedDocument, question: str, first: IndexedDocument | None) -> bool:
    """Whether the question has one of B's names, or a word of them that A's title does not explain."""
    if any(whole(name).search(question) for name in last.names):
        return True
    explained = set() if first is None else set(words(first.title))
    return bool((_name_words(last) - explained) & set(words(question)))


def hints_at(last: IndexedDocument, question: str) -> bool:
    """Whether a word of the question is formed like one of B's names: `Swedish` gives Sweden away."""
    return any(_alike(name, word) for name in _name_words(last) for word in set(words(question)))


def _name_words(document: IndexedDocument) -> set[str]:
    return {word for name in document.names for word in words(name) if len(word) > 3}


def _alike(name: str, word: str) -> bool:
    """Whether they begin alike, but for the last two letters of the name; at least four letters."""
    stem = name[: max(LEAST_ALIKE, len(name) - 2)]
    return word.startswith(stem)
