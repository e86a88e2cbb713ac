"""The words of a collection: which a text has, how many documents have each, which forms one word takes."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import Stemmer

from indexer.chunking.sentences import sentence_spans
from query_api.evaluation.synthetic.reading import IndexedDocument

WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
LEAST_CHARACTERS = 4
COMMON_SHARE = 0.2


def words(text: str) -> list[str]:
    """The words of the text in their order, in lower case."""
    return [word.lower() for word in WORD.findall(text)]


def sentences(text: str) -> list[str]:
    """Its sentences in their order, each on one line."""
    return [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]


class Vocabulary:
    """Counted once over a collection; immutable afterwards."""

    def __init__(self, documents: Sequence[IndexedDocument]) -> None:
        self._stem = Stemmer.Stemmer("english").stemWord
        self.size = len(documents)
        self._of_document = {each.id: frozenset(words(f"{each.title} {each.text}")) for each in documents}
        self._documents = Counter(word for held in self._of_document.values() for word in held)
        self._stems = {id_: frozenset(map(self._stem, held)) for id_, held in self._of_document.items()}
        forms: dict[str, list[str]] = {}
        for word in sorted(self._documents):
            forms.setdefault(self._stem(word), []).append(word)
        self._forms = forms

    def frequency(self, word: str) -> int:
        """The number of documents that have the word."""
        return self._documents[word]

    def stems(self, text: Iterable[str]) -> frozenset[str]:
        return frozenset(map(self._stem, text))

    def tells(self, word: str) -> bool:
        """Whether the word says what a text is about: not short, and not in every fifth document or more."""
        most = max(2.0, COMMON_SHARE * self.size)
        return len(word) >= LEAST_CHARACTERS and self._documents[word] <= most

    def other_form(self, word: str, chance: random.Random) -> str:
        """Another form of the word that the collection has, such as its plural; the word itself where there is none."""
        others = [form for form in self._forms.get(self._stem(word), ()) if form != word and self._documents[form] > 1]
        return chance.choice(others) if others else word

    def holders(self, stems: frozenset[str]) -> list[str]:
        """The documents that have all these stems."""
        return [id_ for id_, held in self._stems.items() if stems <= held]
