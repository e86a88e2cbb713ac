"""Questions answered by one text: in its very words, or in others.

**exact**: four to six words in a row that one document alone holds. **semantic**: the words that tell most of a
sentence, without those of the title and the rarest, some in another form, in another order. Only a language model could
say the same in words the collection does not have; what these measure is finding a text by a part of its words.
"""

import random
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from query_api.evaluation.synthetic.made import Made, Material
from query_api.evaluation.synthetic.reading import IndexedDocument
from query_api.evaluation.synthetic.vocabulary import Vocabulary, sentences, words

T = TypeVar("T")

PHRASE_WORDS = (4, 6)
SENTENCE_WORDS = (10, 40)
LEAST_WORDS = 4
DROPPED = 0.5  # of a sentence's telling words, the rarest
CHANGED = 0.5  # of what is left, as far as there are other forms
TRIES = 8


def exact(material: Material, chance: random.Random) -> Iterator[Made]:
    """A phrase that only one document holds, ends included; each document is tried a few times, then the next."""
    texts = {document.id: _plain(f"{document.title} {document.text}") for document in material.documents}
    for document in _shuffled(material.documents, chance):
        plain = texts[document.id].split()
        for _ in range(TRIES):
            length = chance.randint(*PHRASE_WORDS)
            if len(plain) <= length:
                break
            start = chance.randrange(len(plain) - length)
            phrase = plain[start : start + length]
            if not any(material.vocabulary.tells(word) for word in phrase):
                continue
            padded = f" {' '.join(phrase)} "
            if [id_ for id_, text in texts.items() if padded in text] == [document.id]:
                yield Made("exact", padded.strip(), {document.id: 1})
                break


def semantic(material: Material, chance: random.Random) -> Iterator[Made]:
    """Words of one sentence that no other document has all of, in any form."""
    for document in _shuffled(material.documents, chance):
        candidates = [each for each in sentences(document.text) if _fits(each)]
        for sentence in _shuffled(candidates, chance)[:TRIES]:
            asked = paraphrase(sentence, document, material.vocabulary, chance)
            if len(asked) < LEAST_WORDS:
                continue
            if material.vocabulary.holders(material.vocabulary.stems(asked)) == [document.id]:
                yield Made("semantic", " ".join(asked), {document.id: 1})
                break


def paraphrase(sentence: str, document: IndexedDocument, vocabulary: Vocabulary, chance: random.Random) -> list[str]:
    """The sentence's telling words without those of the title and the rarest, some changed, shuffled."""
    of_title = vocabulary.stems(words(document.title))
    telling = [
        word
        for word in dict.fromkeys(words(sentence))
        if vocabulary.tells(word) and not vocabulary.stems([word]) <= of_title
    ]
    rarest = sorted(telling, key=lambda word: (vocabulary.frequency(word), word))
    kept = set(rarest[int(DROPPED * len(rarest)) :])
    changed = [
        vocabulary.other_form(word, chance) if chance.random() < CHANGED else word for word in telling if word in kept
    ]
    return _shuffled(changed, chance)


def _fits(sentence: str) -> bool:
    least, most = SENTENCE_WORDS
    return least <= len(words(sentence)) <= most


def _plain(text: str) -> str:
    """Words and numbers, in lower case, one blank before, between and after."""
    found = re.findall(r"\w+", text.lower())
    return f" {' '.join(found)} "


def _shuffled(items: Sequence[T], chance: random.Random) -> list[T]:
    return chance.sample(items, len(items))
