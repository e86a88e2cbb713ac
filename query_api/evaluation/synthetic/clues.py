"""Questions of a link: a sentence of A with the name of B taken out.

    “Áedán was decisively defeated by Æthelfrith of this kingdom at the battle of Degsastan.” Which kingdom is it?

What stands in the name's place is the kind of thing that B's first sentence says it is, where it says so in the usual
words (`X is a kingdom …`), and a blank where it does not. Nothing else of B is in the question: three words of its
text, as a first version gave, are what no person would ask with, and lead to B by words.

What makes it sensible, each a property of texts: B is named once in the sentence, by a proper name that is no part of
a longer one (`Kuwait City` says nothing of Kuwait) and no member of a list, which anything could be; the sentence is
short enough to be asked with, and whole. What makes it one path: B alone has its names, and the sentence is A's alone.
Where it does not speak of what A is about (`He was a contemporary of …`), or shares its telling words with another
document, the question says whose text it is from.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from indexer.extraction.lexicon import word_set
from query_api.evaluation.synthetic.made import Made, Material, Step
from query_api.evaluation.synthetic.naming import asks_for, described, hints_at, quotes, whole
from query_api.evaluation.synthetic.reading import IndexedDocument
from query_api.evaluation.synthetic.vocabulary import Vocabulary, sentences, words

SENTENCE_WORDS = (8, 28)
LEAST_TELLING = 3
FIRST_CHARACTERS = 600
LEAST_OF_KIND = 5
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


class _Clue(NamedTuple):
    """`kind` where it stands in the text in the name's place; None where a blank does. `said` are A's own words."""

    text: str
    kind: str | None
    said: tuple[str, ...]
    sentence: str


def by_link(material: Material, chance: random.Random) -> Iterator[Made]:
    """A question for each B that some sentence names so, in the order of A's that chance decides."""
    titles = Counter(document.title.lower() for document in material.documents)
    names = Counter(name.lower() for document in material.documents for name in document.names)
    kinds = kinds_of(material)
    asked: set[str] = set()
    for first in chance.sample(material.documents, len(material.documents)):
        if titles[first.title.lower()] > 1 or not first.links:
            continue
        said = [each for each in sentences(first.text) if _fits(each)]
        for target in chance.sample(first.links, len(first.links)):
            last = material.by_id[target]
            if target in asked or any(names[name.lower()] > 1 for name in last.names) or quotes(last, described(first)):
                continue
            clues = [clue for each in said if (clue := _clue(each, last, kinds.get(target))) is not None]
            if not clues:
                continue
            clue = chance.choice(clues)
            text = _question(clue, first, material.vocabulary, chance)
            if text is None or asks_for(last, text, None) or hints_at(last, text):
                continue
            asked.add(target)
            yield Made("multi-hop", text, {last.id: 1}, (Step(first.id, "links_to", last.id, clue.sentence),))
            break


def kinds_of(material: Material) -> Mapping[str, str]:
    """{document id: what its beginning says it is}, of kinds that at least five documents are said to be."""
    found: dict[str, tuple[str, ...]] = {}
    for document in material.documents:
        match = _KIND.search(document.text[:FIRST_CHARACTERS])
        if match is not None and match[1].split()[-1] not in _NO_KIND:
            found[document.id] = tuple(word for word in match[1].split()[-2:] if word not in _NO_KIND)
    whole_kinds = Counter(found.values())
    heads = Counter(said[-1] for said in found.values())
    kinds = {}
    for name, said in found.items():
        if whole_kinds[said] >= LEAST_OF_KIND:
            kinds[name] = " ".join(said)
        elif heads[said[-1]] >= LEAST_OF_KIND:
            kinds[name] = said[-1]
    return kinds


def _clue(sentence: str, last: IndexedDocument, kind: str | None) -> _Clue | None:
    """The sentence with B's only name taken out; None where it has none, or more, or one that is part of another."""
    plain = " ".join(_BRACKETS.sub("", sentence).split())
    found = [match for name in last.names for match in whole(name).finditer(plain)]
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


def _question(clue: _Clue, first: IndexedDocument, vocabulary: Vocabulary, chance: random.Random) -> str | None:
    """None for a sentence that tells too little."""
    telling = [word for word in clue.said if vocabulary.tells(word)]
    if len(telling) < LEAST_TELLING:
        return None
    title = described(first)
    speaks_of_it = bool(vocabulary.stems(words(title)) & vocabulary.stems(telling))
    alone = speaks_of_it and vocabulary.holders(vocabulary.stems(telling)) == [first.id]
    own, of_title = (_WITH_KIND, _WITH_KIND_OF) if clue.kind else (_WITH_BLANK, _WITH_BLANK_OF)
    return chance.choice(own if alone else of_title).format(clue=clue.text, kind=clue.kind, title=title)


def _fits(sentence: str) -> bool:
    least, most = SENTENCE_WORDS
    return (
        least <= len(words(sentence)) <= most
        and _SENTENCE.fullmatch(sentence) is not None
        and _CODE.search(sentence) is None
    )
