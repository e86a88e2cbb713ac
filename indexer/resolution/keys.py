"""The resolution key of a name: names of agreeing types with equal keys are the same entity.

A pure function of one name, so merges by it cost nothing to add, and are undone exactly when a name goes. It is
conservative: a rule is here only where two names that it makes equal are the same thing but for their spelling.
What is only likely, such as initials or a typo, is a candidate (`indexer.resolution.candidates`).
"""

import re
import unicodedata
from functools import lru_cache

from indexer.extraction.lexicon import word_set
from schemas.ids import normalise_name

MAX_KEY_CHARACTERS = 300
UNTYPED = frozenset(("", "thing"))
KINDS_OF_THING = frozenset(("work", "product", "event", "concept"))
WITH_PLURALS = frozenset(("concept", "product", "thing", ""))
WITHOUT_ARTICLE = frozenset(("place", "organisation", "event", "time", "concept", "thing"))
WITH_TITLES = frozenset(("", "work", "product"))

_DASHES = re.compile("[‐‑‒–—―−﹘﹣－]")
_APOSTROPHES = re.compile(r"(?<=\w)['’ʼ`´](?=\w)")
_POSSESSIVE = re.compile(r"['’][sS]\b")
_DOTTED = re.compile(r"\b(?:[^\W\d_]\. ?)+[^\W\d_](?:\.|\b)")
_ACRONYMS = re.compile(r"(?<![^\s-])([^\W\d_a-z]{2,})s$")
_BRACKETED = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_BRACKETS = str.maketrans("()[]", "    ")
_SEPARATORS = re.compile(r"(?<!\d)[-/]|[-/](?!\d)")  # those between two digits stay
_ABBREVIATED = re.compile(r"(?<=[^\W\d_])\.(?=\s|$)")
_AMPERSAND = re.compile(r"(?<=\s)&(?=\s)")
_LEGAL_FORM = re.compile(
    r",?\s+(?:inc|incorporated|ltd|limited|llc|l\.l\.c|plc|p\.l\.c|gmbh|corp|corporation|oyj|s\.p\.a|s\.r\.l|"
    r"(?-i:AG|SA|NV|BV|KG|AB|Oy|ApS|SpA|Srl|S\.A|N\.V|B\.V|A/S|A\.G))\.?$",
    re.IGNORECASE,
)
_NAME_SUFFIXES = word_set("jr sr ii iii iv v phd md esq inc ltd llc")
_PREPOSITIONS = word_set("of for in on with to by from at and or under over between")

# Singular in meaning or another word without the s.
_NOT_PLURALS = word_set(
    """aegis always analysis arms athens axis basis canvas chaos chess christmas congress corps crisis customs
    data diabetes ethics glasses goods gross headquarters hers his hypothesis iris kubernetes less lens mars
    mass mathematics means media news pandas paris physics pants politics rabies redis scissors series shorts
    species sports stairs states thesis this tigris times tries us venus windows works yes"""
)


def types_agree(first: str, second: str) -> bool:
    """Whether a thing of one type may be of the other: equal types, kinds of things among each other, anything with
    what has no type."""
    if first == second or "" in {first, second}:
        return True
    return {first, second} <= KINDS_OF_THING | UNTYPED


@lru_cache(maxsize=1 << 16)
def resolution_key(name: str, entity_type: str) -> str:
    """The key of a name as people write it; "" for one without a letter or digit, which is merged with nothing.

    Two names with the same key, other than "", of one collection and of types that agree, are the same entity. A name
    without its capitals has a key, too; rules that need to see capitals then do not apply.
    """
    if len(name) > MAX_KEY_CHARACTERS or "_" in name:  # the underscore is of code, where each letter counts
        return normalise_name(name)
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", name))
    text = (_BRACKETED.sub(" ", text).strip() or text).translate(_BRACKETS)  # as `normalise_name` does, once
    text = _APOSTROPHES.sub("", _POSSESSIVE.sub("", text)).strip()
    if entity_type == "person":
        text = _in_spoken_order(text)
    if entity_type == "organisation":
        text = _without_legal_form(text)
    text = _without_article(_ACRONYMS.sub(r"\1", text), entity_type)
    text = _DOTTED.sub(lambda match: match[0].replace(".", "").replace(" ", "") + " ", text)
    text = _AMPERSAND.sub("and", _ABBREVIATED.sub("", _SEPARATORS.sub(" ", text)))
    words = normalise_name(text).split()
    if entity_type == "person":
        words = _joined_initials(words)
    if entity_type in WITH_PLURALS:
        words = _singular(words, text, entity_type)
    return " ".join(words)


def _in_spoken_order(name: str) -> str:
    """`Okafor, Maria J.` as `Maria J. Okafor`; a list of names or a degree stays as it is."""
    family, comma, given = (part.strip() for part in name.partition(","))
    short = len(family.split()) <= 3 and 1 <= len(given.split()) <= 3
    if not comma or not short or "," in given or given.rstrip(".").casefold() in _NAME_SUFFIXES:
        return name
    return f"{given} {family}"


def _without_legal_form(name: str) -> str:
    """Without one or two forms at the end, such as `Co. Ltd`: never without all of the name."""
    bare = name
    for _ in range(2):
        shorter = _LEGAL_FORM.sub("", bare)
        if shorter == bare or not normalise_name(shorter) or shorter.casefold() == "the":
            break
        bare = shorter
    return bare


def _without_article(name: str, entity_type: str) -> str:
    """`The Times of Malta` and `Times of Malta` are the same; `The Who` and `WHO`, `The Band` and `band` need not be,
    so an article before one short word stays, but for capitals (`the EU`), and so does `a` before one word (`A level`).
    One with a capital may belong to the title of a work (`The Colossus of Rhodes`, a film), and stays."""
    article, _, rest = name.partition(" ")
    words, is_the = rest.split(), article.casefold() == "the"
    is_article = (is_the or article.casefold() in ("a", "an")) and rest[:1].isalnum()
    if not is_article or (not article.islower() and entity_type in WITH_TITLES):
        return name
    capitals = len(rest) >= 2 and rest.replace(".", "").isupper() and rest.replace(".", "").isalpha()
    one_long = entity_type in WITHOUT_ARTICLE and len(words[0]) >= 5
    return rest if len(words) >= 2 or (is_the and (capitals or one_long)) else name


def _joined_initials(words: list[str]) -> list[str]:
    """`j r r tolkien` as `jrr tolkien`."""
    joined: list[str] = []
    was_initial = False
    for word in words:
        initial = len(word) == 1 and word.isalpha()
        if initial and was_initial:
            joined[-1] += word
        else:
            joined.append(word)
        was_initial = initial
    return joined


def _singular(words: list[str], text: str, entity_type: str) -> list[str]:
    """The head noun in the singular: the last word, or the one before `of`, `for`, …

    A head noun with a capital may be a proper name (`Windows`, `Wild Things`), and stays; that of a concept of several
    words does not, for headings capitalise them.
    """
    if not words:
        return words
    head = next((at for at, word in enumerate(words) if at and word in _PREPOSITIONS), len(words)) - 1
    if not (entity_type == "concept" and len(words) > 1) and words[head] not in text:
        return words
    return [*words[:head], singular(words[head]), *words[head + 1 :]]


def singular(word: str) -> str:
    """An English noun without the ending of its plural, in a form that both share: `caches` and `cache` are `cach`."""
    if len(word) >= 4 and word not in _NOT_PLURALS and word.isalpha() and word.isascii():
        if word.endswith("ies") and len(word) > 4:
            word = word[:-3] + "y"
        elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
            word = word[:-2]
        elif word.endswith("s") and not word.endswith(("ss", "us", "is", "as", "ics")):
            word = word[:-1]
    if len(word) > 4 and word.endswith("ie"):
        return word[:-2] + "y"
    return word[:-1] if len(word) > 4 and word.endswith(("che", "xe", "ze")) else word
