"""Questions with one gold path: they describe a document only through another one, which names it.

Two forms, in turns where a collection has both. Of a **relation**: "What is the status of the document that replaced
<title of A>?", asked for what A's header names. Of a **link**: a sentence of A with the name of B taken out, and a few
words that B is described by.

Only B is gold. Any search that reads the question finds A, whose words stand in it, so A judged would give every
approach the same half and hide what is measured: whether the step from A to B is made. A is in the path.

What makes it one path, each a property of texts and none of a ranking: A's title is that of A alone; the relation, or
the sentence, names one document; B does not quote A's title; and of B's names no word stands in the question that A
does not give (so B is not simply asked for). The words a link question gives of B are such as other documents have too:
they tell B from other neighbours of A, not from the whole collection. No question is dropped because a search finds it.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator

from query_api.evaluation.generating.fields import date_in
from query_api.evaluation.generating.made import Made, Material, Step
from query_api.evaluation.generating.reading import IndexedDocument
from query_api.evaluation.generating.vocabulary import sentences, words

SENTENCE_WORDS = (8, 40)
GIVEN_WORDS = 3
LEAST_HOLDERS = 2
MASK = "___"

_RELATED = {
    "superseded_by": "the document that superseded “{}”",
    "obsoleted_by": "the document that made “{}” obsolete",
    "replaced_by": "the document that replaced “{}”",
}
_RELATED_BY = {"replaces": "replaces", "requires": "requires", "supersedes": "supersedes", "updates": "updates"}
_ASKED = ("What is the {} of {}?", "Which {} does {} have?", "I need the {} of {}.")
_LEADING_NAME = re.compile(r"^\W*[–—:-]\s*")


def multi_hop(material: Material, chance: random.Random) -> Iterator[Made]:
    """Both forms in turns, until neither has more."""
    forms = [_by_relation(material, chance), _by_link(material, chance)]
    while forms:
        for form in list(forms):
            made = next(form, None)
            if made is None:
                forms.remove(form)
            else:
                yield made


def described(document: IndexedDocument) -> str:
    """The document's title without a name it begins with: "PEP 2 – New Modules" is described by "New Modules"."""
    for name in document.names[1:]:
        if document.title.lower().startswith(name.lower()) and len(name) < len(document.title):
            rest = _LEADING_NAME.sub("", document.title[len(name) :])
            if rest != document.title[len(name) :] and rest:
                return rest
    return document.title


def _by_relation(material: Material, chance: random.Random) -> Iterator[Made]:
    titles = Counter(described(document).lower() for document in material.documents)
    for first in chance.sample(material.documents, len(material.documents)):
        title = described(first)
        if titles[title.lower()] > 1:
            continue
        by_field = Counter(field for field, _ in first.relations)
        for field, target in chance.sample(first.relations, len(first.relations)):
            last = material.by_id[target]
            single = [name for name, held in last.fields.items() if len(held) == 1 and date_in(held[0]) is None]
            if by_field[field] > 1 or not single or _quotes(last, title):
                continue
            wording = _RELATED.get(field, f"the document that “{{}}” {_verb(field)}").format(title)
            asked = chance.choice(single)
            text = chance.choice(_ASKED).format(asked.replace("_", " "), wording)
            if _asks_for(last, text, first):
                continue
            step = Step(first.id, field, last.id, f"{field}: {last.names[-1]}")
            yield Made("multi-hop", text, {last.id: 1}, (step,))
            break


def _by_link(material: Material, chance: random.Random) -> Iterator[Made]:
    titles = Counter(document.title.lower() for document in material.documents)
    for first in chance.sample(material.documents, len(material.documents)):
        if titles[first.title.lower()] > 1 or not first.links:
            continue
        said = [each for each in sentences(first.text) if _fits(each)]
        for target in chance.sample(first.links, len(first.links)):
            last = material.by_id[target]
            if _quotes(last, described(first)):
                continue
            naming = [each for each in said if _names(each, last)]
            if not naming:
                continue
            sentence = chance.choice(naming)
            given = _given(material, last, sentence, chance)
            text = f"What is described by {', '.join(given)}, of which it is said: {_masked(sentence, last)}"
            if len(given) < GIVEN_WORDS or _asks_for(last, text, None):
                continue
            yield Made("multi-hop", text, {last.id: 1}, (Step(first.id, "links_to", last.id, sentence),))
            break


def _given(material: Material, last: IndexedDocument, sentence: str, chance: random.Random) -> list[str]:
    """Words that B is described by early on, that neither its names nor the sentence hold, and some others have."""
    vocabulary = material.vocabulary
    known = vocabulary.stems(words(" ".join([*last.names, sentence])))
    early = list(dict.fromkeys(words(last.text)))[:120]
    shared = [
        word
        for word in early
        if vocabulary.tells(word)
        and vocabulary.frequency(word) >= LEAST_HOLDERS
        and not vocabulary.stems([word]) <= known
    ]
    return sorted(chance.sample(shared, min(GIVEN_WORDS, len(shared))))


def _verb(field: str) -> str:
    return _RELATED_BY.get(field, f"names under “{field.replace('_', ' ')}”")


def _fits(sentence: str) -> bool:
    least, most = SENTENCE_WORDS
    return least <= len(words(sentence)) <= most


def _names(text: str, document: IndexedDocument) -> bool:
    return any(_whole(name).search(text) for name in document.names)


def _masked(sentence: str, document: IndexedDocument) -> str:
    for name in sorted(document.names, key=len, reverse=True):
        sentence = _whole(name).sub(MASK, sentence)
    return sentence


def _quotes(document: IndexedDocument, title: str) -> bool:
    return _whole(title).search(document.text) is not None


def _asks_for(last: IndexedDocument, question: str, first: IndexedDocument | None) -> bool:
    """Whether the question has one of B's names, or a word of them that A's title does not explain."""
    if _names(question, last):
        return True
    explained = set() if first is None else set(words(first.title))
    strange = {word for name in last.names for word in words(name) if len(word) > 3} - explained
    return bool(strange & set(words(question)))


def _whole(name: str) -> re.Pattern[str]:
    """The name as whole words, in any case, blanks as they come."""
    spaced = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!\w){spaced}(?!\w)", re.IGNORECASE)
