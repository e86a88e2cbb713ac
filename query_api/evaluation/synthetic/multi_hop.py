"""Multi-hop questions: they describe a document B only through another one, A, which names it.

Two forms, in turns where a collection has both. By **relation**: "What is the status of the document that replaced
<title of A>?", for what A's header names. By **link**: a sentence of A with the name of B taken out.

    “Áedán was decisively defeated by Æthelfrith of this kingdom at the battle of Degsastan.” Which kingdom is it?

The name is replaced by the kind of thing that B's first sentence says it is (`X is a kingdom …`), else by a blank.
Nothing else of B is in the question.

Only B is gold. Any search that reads the question finds A, whose words it holds; to judge A would give every
approach the same half and hide whether the step from A to B is made. A is in the path.

Properties of the texts, not of a ranking, make the path unique: A's title is that of A alone; the relation, or the
sentence, names one document by a proper name that is neither part of a longer one nor a member of a list; B alone has
its names and does not quote A's title; the question uses none of B's names that A's title does not have. A sentence
that does not speak of what A is about, or shares its content words with another document, is put with A's title.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from indexer.extraction.lexicon import word_set
from query_api.evaluation.synthetic.single_hop import date_in
from query_api.evaluation.synthetic.source import (
    GeneratedQuestion,
    IndexedDocument,
    Source,
    Step,
    Vocabulary,
    sentences,
    words,
)

SENTENCE_WORDS = (8, 28)
MIN_CONTENT_WORDS = 3
FIRST_CHARACTERS = 600
MIN_OF_KIND = 5
BLANK = "___"

_WITH_KIND = ("“{clue}” Which {kind} is it?", "Which {kind} is meant here: {clue}")
_WITH_BLANK = ("“{clue}” What is meant by ___?", "What belongs in the blank: {clue}")
_WITH_KIND_OF = (
    "In “{title}” it says: “{clue}” Which {kind} is it?",
    "Which {kind} does the text on {title} mean: {clue}",
)
_WITH_BLANK_OF = (
    "In “{title}” it says: “{clue}” What is meant by ___?",
    "What belongs in the blank in the text on {title}: {clue}",
)

_KIND = re.compile(
    r"\b(?:is|was|are|were) (?:an?|the|one of the) ((?:[a-z][a-z-]* ){0,2}[a-z][a-z-]+)"
    r"(?= (?:and|at|between|by|for|from|in|located|near|of|on|situated|that|to|where|which|who|with)\b|[,.;:])"
)
_NO_KIND = word_set(
    """article body class example first form given group head kind known large largest list located lot
    member most name number one part result same second series set situated small son daughter term type use used
    variety way word following"""
)
_BRACKETS = re.compile(r"\s*(?:\([^()]*\)|\[[^\[\]]*\])")
_SENTENCE = re.compile(r"[A-Z“\"'].*[.!?][”\"']?", re.DOTALL)
_CODE = re.compile(r"[{}<>=|\\`_]|::|\(\)")
_PREPOSITION = re.compile(
    r"\b(?:about|across|against|around|at|between|by|for|from|in|into|near|of|on|than|throughout|to|towards?|with|within)"
    r"(?: the| an?)? $",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\b(?:the|an?) $", re.IGNORECASE)
_NAME_BEFORE = re.compile(r"(?:[A-Z][\w'’.-]*|[A-Z][\w'’.-]* (?:de|of|of the|the|la|von|van)|\d)[ -]$")
_LISTED_BEFORE = re.compile(r"[A-Z][\w'’.-]*(?:, (?:and |or )?| and | or | & )(?:the )?$")
_LISTED_AFTER = re.compile(r"(?:,? (?:and|or|&)|,) (?:the )?[A-Z]")
_NAME_AFTER = re.compile(r"(?:[-/]|['’](?!s\b)|['’]s [A-Z]| [A-Z0-9]| (?:for|of|on) (?:the )?[A-Z])")
MIN_STEM = 4
_LEADING_NAME = re.compile(r"^\W*[–—:-]\s*")

_RELATED = {
    "superseded_by": "the document that superseded “{}”",
    "obsoleted_by": "the document that made “{}” obsolete",
    "replaced_by": "the document that replaced “{}”",
}
_RELATED_BY = {"replaces": "replaces", "requires": "requires", "supersedes": "supersedes", "updates": "updates"}
_ASKED = ("What is the {} of {}?", "Which {} does {} have?", "I need the {} of {}.")


def multi_hop(source: Source, rng: random.Random) -> Iterator[GeneratedQuestion]:
    """Both forms in turns, until neither has more."""
    forms = [_by_relation(source, rng), by_link(source, rng)]
    while forms:
        for form in list(forms):
            made = next(form, None)
            if made is None:
                forms.remove(form)
            else:
                yield made


def _by_relation(source: Source, rng: random.Random) -> Iterator[GeneratedQuestion]:
    titles = Counter(descriptive_title(document).lower() for document in source.documents)
    for first in rng.sample(source.documents, len(source.documents)):
        title = descriptive_title(first)
        if titles[title.lower()] > 1:
            continue
        by_field = Counter(field for field, _ in first.relations)
        for field, target in rng.sample(first.relations, len(first.relations)):
            last = source.by_id[target]
            single = [
                name for name, values in last.fields.items() if len(values) == 1 and _is_informative(values[0], last)
            ]
            if by_field[field] > 1 or not single or quotes_title(last, title):
                continue
            wording = _RELATED.get(field, f"the document that “{{}}” {_verb(field)}").format(title)
            relation = rng.choice(single)
            text = rng.choice(_ASKED).format(relation.replace("_", " "), wording)
            if names_document(last, text, first):
                continue
            step = Step(first.id, field, last.id, f"{field}: {last.names[-1]}")
            yield GeneratedQuestion("multi-hop", text, {last.id: 1}, (step,), last.fields[relation][0])
            break


def _is_informative(value: str, document: IndexedDocument) -> bool:
    """Whether the value is more than a date, and than a part of what the document is called."""
    return date_in(value) is None and not any(whole_word(value).search(name) for name in document.names)


def _verb(field: str) -> str:
    return _RELATED_BY.get(field, f"names under “{field.replace('_', ' ')}”")


class _Clue(NamedTuple):
    """`kind` where it replaces the name in the text; None where a blank does. `own_words` are those of A."""

    text: str
    kind: str | None
    own_words: tuple[str, ...]
    sentence: str


def by_link(source: Source, rng: random.Random) -> Iterator[GeneratedQuestion]:
    """A question for each B that a sentence of another document names, in random order."""
    titles = Counter(document.title.lower() for document in source.documents)
    names = Counter(name.lower() for document in source.documents for name in document.names)
    used = {each.id for each in source.documents if any(names[name.lower()] > 1 for name in each.names)}  # or ambiguous
    kinds = kinds_of(source)
    for first in rng.sample(source.documents, len(source.documents)):
        if titles[first.title.lower()] > 1 or not first.links:
            continue
        candidates = list(filter(_fits, sentences(first.text)))
        for target in rng.sample(first.links, len(first.links)):
            last = source.by_id[target]
            if target in used or quotes_title(last, descriptive_title(first)):
                continue
            clues = list(filter(None, (_clue(each, last, kinds.get(target)) for each in candidates)))
            made = _asked_by(clues, first, last, source, rng)
            if made is not None:
                used.add(target)
                yield made
                break


def _asked_by(
    clues: Sequence[_Clue], first: IndexedDocument, last: IndexedDocument, source: Source, rng: random.Random
) -> GeneratedQuestion | None:
    """The question for the last document by one of the clues; None where there is none, or where it would name what it
    asks for."""
    if not clues:
        return None
    clue = rng.choice(clues)
    text = _question(clue, first, source.vocabulary, rng)
    if text is None or names_document(last, text, None) or resembles_name(last, text):
        return None
    return GeneratedQuestion("multi-hop", text, {last.id: 1}, (Step(first.id, "links_to", last.id, clue.sentence),))


def kinds_of(source: Source) -> Mapping[str, str]:
    """{document id: the kind of thing that its beginning says it is}, for kinds of at least MIN_OF_KIND documents."""
    found: dict[str, tuple[str, ...]] = {}
    for document in source.documents:
        match = _KIND.search(document.text[:FIRST_CHARACTERS])
        if match is not None and match[1].split()[-1] not in _NO_KIND:
            found[document.id] = tuple(word for word in match[1].split()[-2:] if word not in _NO_KIND)
    whole_kinds = Counter(found.values())
    heads = Counter(kind[-1] for kind in found.values())
    kinds = {}
    for name, kind in found.items():
        if whole_kinds[kind] >= MIN_OF_KIND:
            kinds[name] = " ".join(kind)
        elif heads[kind[-1]] >= MIN_OF_KIND:
            kinds[name] = kind[-1]
    return kinds


def _clue(sentence: str, last: IndexedDocument, kind: str | None) -> _Clue | None:
    """The sentence with B's only name taken out; None where it has none, or more, or one that is part of another."""
    plain = " ".join(_BRACKETS.sub("", sentence).split())
    found = [match for name in last.names for match in whole_word(name).finditer(plain)]
    if len(found) != 1:
        return None
    [match] = found
    before, after = plain[: match.start()], plain[match.end() :]
    if not match[0][0].isupper() or not words(before):
        return None
    if _NAME_BEFORE.search(before) or _NAME_AFTER.match(after):
        return None
    if _LISTED_BEFORE.search(before) or _LISTED_AFTER.match(after):
        return None
    named = kind if _PREPOSITION.search(before) else None  # not `ancient this city`
    in_its_place = BLANK if named is None else f"this {named}"
    text = f"{_ARTICLE.sub('', before)}{in_its_place}{after}"
    return _Clue(text, named, tuple(words(f"{before} {after}")), sentence)


def _question(clue: _Clue, first: IndexedDocument, vocabulary: Vocabulary, rng: random.Random) -> str | None:
    """None for a sentence with too few content words."""
    content_words = [word for word in clue.own_words if vocabulary.is_content_word(word)]
    if len(content_words) < MIN_CONTENT_WORDS:
        return None
    title = descriptive_title(first)
    on_topic = bool(vocabulary.stems(words(title)) & vocabulary.stems(content_words))
    alone = on_topic and vocabulary.documents_with(vocabulary.stems(content_words)) == [first.id]
    own, title_stems = (_WITH_KIND, _WITH_KIND_OF) if clue.kind else (_WITH_BLANK, _WITH_BLANK_OF)
    return rng.choice(own if alone else title_stems).format(clue=clue.text, kind=clue.kind, title=title)


def _fits(sentence: str) -> bool:
    least, most = SENTENCE_WORDS
    return (
        least <= len(words(sentence)) <= most
        and _SENTENCE.fullmatch(sentence) is not None
        and _CODE.search(sentence) is None
    )


def descriptive_title(document: IndexedDocument) -> str:
    """The title without a name it begins with: "New Modules" of "PEP 2 – New Modules"."""
    for name in document.names[1:]:
        if document.title.lower().startswith(name.lower()) and len(name) < len(document.title):
            remainder = _LEADING_NAME.sub("", document.title[len(name) :])
            if remainder != document.title[len(name) :] and remainder:
                return remainder
    return document.title


@lru_cache(maxsize=100_000)
def whole_word(name: str) -> re.Pattern[str]:
    """The name as whole words, in any case, blanks as they come."""
    spaced = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!\w){spaced}(?!\w)", re.IGNORECASE)


def quotes_title(document: IndexedDocument, title: str) -> bool:
    return whole_word(title).search(document.text) is not None


def names_document(last: IndexedDocument, question: str, first: IndexedDocument | None) -> bool:
    """Whether the question has one of B's names, or a word of them that A's title does not explain."""
    if any(whole_word(name).search(question) for name in last.names):
        return True
    explained = set() if first is None else set(words(first.title))
    return bool((_name_words(last) - explained) & set(words(question)))


def resembles_name(last: IndexedDocument, question: str) -> bool:
    """Whether a word of the question is formed like one of B's names: `Swedish` gives Sweden away."""
    return any(_shares_stem(name, word) for name in _name_words(last) for word in set(words(question)))


def _name_words(document: IndexedDocument) -> set[str]:
    return {word for name in document.names for word in words(name) if len(word) > 3}


def _shares_stem(name: str, word: str) -> bool:
    """Whether they begin with the same letters, but for the last two letters of the name; at least four letters."""
    stem = name[: max(MIN_STEM, len(name) - 2)]
    return word.startswith(stem)
