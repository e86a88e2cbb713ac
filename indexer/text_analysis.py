"""The analyzer of the keyword channel: texts to index terms, for passages and queries.

Words are lower-cased, in plain letters, without stop words, and stemmed: by the rules of their script or else of
English (Porter 2001), and by those of the text's language as well (Snowball). A stop word in capitals (`IT`, `WHO`) is
a word, but in lines of capitals. A compound such as `GraphView`, `utf8` or `Wi-Fi` counts as a whole and in its parts;
a word with digits in several places, such as a hash or a serial number, only as a whole.

Scripts without blanks between words count by pairs of letters, and Han by single ones, too, as do Korean words without
their particle by pairs of syllables (Lee, Ahn 1996, "Using n-grams for Korean text retrieval"). A query has fewer terms
than a text: a single letter of Han only where it is alone. A term is the CRC-32 of its stem: two stems collide
about once in four thousand million pairs.
"""

import re
import threading
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache, lru_cache, partial
from itertools import chain, pairwise
from unicodedata import normalize

import Stemmer

from indexer.chunking.sentences import DEFAULT_LANGUAGE, language_of, likely_language
from indexer.extraction.lexicon import word_set
from schemas.letters import INVISIBLE, MARKS, plain_letters

MAX_WORD_CHARACTERS = 64
CACHED_QUERIES = 256  # of at most some 100 kB each
CACHED_WORDS, CACHED_WORDS_OF_OTHERS = 65_536, 4_096  # of English, of each other language with stems of its own
MOST_COMPOUNDED = 3  # words that hyphens join
SHOUTED = 3  # words in capitals in a line of nothing else
SHORTEST_HINDI = 3  # letters of a stem, without their vowel signs
LONGEST_PREFIX = 2  # letters before a blank that may belong to the next word: `e mail`, `wi fi`

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUND_MARKS = "\u3099\u309a\uff9e\uff9f"
_KANA = "\u3031-\u3035\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_THAI_LAO_BURMESE_KHMER = "\u0e01-\u0eff\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f\u1780-\u17ff"
_UNSPACED = f"{_HAN}{_KANA}{_THAI_LAO_BURMESE_KHMER}"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"
_INSIDE = f"{MARKS}{INVISIBLE}"

_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:['-][A-Za-z0-9]+)*")
# marks, apostrophes and hyphens are within a word; letters are matched in runs, which takes two thirds of the time
_WORD = re.compile(rf"[^\W_]+(?:(?:[{_INSIDE}]+|['’״׳‐‑-](?=[^\W_]))[^\W_]*)*")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_BY_LETTERS = re.compile(f"[{_UNSPACED}{_HANGUL}]")
_RUN = re.compile(f"[{_UNSPACED}][{_UNSPACED}{_INSIDE}]*|[{_HANGUL}]+|[^{_UNSPACED}{_HANGUL}]+")
_LETTER = re.compile(f"[^{_INSIDE}{_SOUND_MARKS}][{_INSIDE}{_SOUND_MARKS}]*")
_IS_HAN, _IS_HANGUL, _IS_ACCENTED = re.compile(f"[{_HAN}]"), re.compile("[가-힣]+"), re.compile("[\u00c0-\u024f]")
_HYPHENS, _NO_HYPHEN = re.compile("[‐‑-]"), re.compile("[^‐‑-]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_DIGITS = re.compile(r"\d+")
_POSSESSIVE = re.compile(r"'s$", re.IGNORECASE)
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu|(?:jus|lors|puis)qu|un|(?:d|n|s)?[ae]ll|dall|quest)'(?=..)", re.IGNORECASE)
_PARTICLE = re.compile(
    "(?<=.)(?:은|는|이|가|을|를|의|에|도|와|과|로|만|께|으로|에서|에게|까지|부터|처럼|보다|이나|하고)$"
)
_STOP_WORDS = word_set(
    """a about an and are as at be been but by can did do does for from had has have he her his how i if in into is it
    its no not of on or our she so such that the their them then there these they this to was we were what when where
    which who whom whose why will with would you your"""
)
_CAPITALS = frozenset(word.upper() for word in _STOP_WORDS - word_set("and or not") if len(word) > 1)
_BY_SCRIPT = (
    ("\u0400", "\u052f", "russian"), ("\u0370", "\u03ff", "greek"), ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"), ("\u0530", "\u058f", "armenian"), ("\u0b80", "\u0bff", "tamil"),
)  # fmt: skip
_BY_LANGUAGE = {
    "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "es": "spanish", "et": "estonian", "eu": "basque",
    "fi": "finnish", "fr": "french", "ga": "irish", "hu": "hungarian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "sv": "swedish", "tr": "turkish",
    "af": "dutch", "az": "turkish", "gl": "portuguese", "lb": "german", "ms": "indonesian", "nn": "norwegian",
    "sk": "czech",
}  # fmt: skip
_HEBREW_PREFIX = re.compile("^[והבלמשכ](?=[א-ת]{3})")
_DEVANAGARI = str.maketrans("ँ", "ं", "़")  # written and left out at will
_LINE = re.compile("[^\n]+")
_SMALL = str.maketrans({letter: letter.lower() for letter in map(chr, range(ord("A"), ord("Z") + 1))})
_STEMMING = threading.Lock()  # a stemmer serves one thread at a time


def terms_of(text: str, language: str = DEFAULT_LANGUAGE) -> list[int]:
    """The terms of a text, in order and with repetitions; each in [0, 2³²). `language` is an ISO 639 code."""
    return list(chain.from_iterable(map(_analysis(language), _words(text))))


def words_with_terms(
    text: str, start: int, end: int, wanted: Container[int]
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """(start, end, terms) of each word of `text[start:end]` with a wanted term, in characters of `text`; of a compound
    only the parts that hold one. Pairs of letters that overlap are one word."""
    analysed = _analysis(language_of(text))
    first, last = start, start
    held: tuple[int, ...] = ()
    for begin, finish, word in _parted(_spans(text, start, end), wanted):
        terms = analysed(word[:MAX_WORD_CHARACTERS])
        if not any(term in wanted for term in terms):
            continue
        if held and begin < last:
            last, held = max(last, finish), (*held, *terms)
            continue
        if held:
            yield first, last, held
        first, last, held = begin, finish, terms
    if held:
        yield first, last, held


def _parted(words: Iterable[tuple[int, int, str]], wanted: Container[int]) -> Iterator[tuple[int, int, str]]:
    """A compound whole where that is wanted, else its parts."""
    for start, end, word in words:
        if _HYPHENS.search(word) is None or _joined(word) in wanted:
            yield start, end, word
            continue
        yield from ((start + part.start(), start + part.end(), part[0]) for part in _NO_HYPHEN.finditer(word))


@lru_cache(CACHED_QUERIES)
def query_terms(text: str) -> tuple[int, ...]:
    """The terms to look for, in order and with repetitions. Cached.

    Those of the text, but for single letters of Han beside others, and for long compounds as a whole beside other
    words, which their parts are enough for; in addition stems by the language of the text and of
    a word with accents, and one of a letter or two joined with the next word (`e mail`).
    """
    words, in_english, likely = _words(text, of_query=True), _analysis(DEFAULT_LANGUAGE), likely_language(text)
    found: list[int] = []
    for word, following in pairwise([*words, ""]):
        parts = _NO_HYPHEN.findall(word) if len(words) > 1 else [word]
        parts = [word] if len(parts[0]) <= LONGEST_PREFIX else parts
        terms = dict.fromkeys(chain.from_iterable(map(in_english, parts)))
        for language in {likely, likely_language(word)} if _IS_ACCENTED.search(word) else {likely}:
            terms |= dict.fromkeys(chain.from_iterable(map(_analysis(language), parts)))
        if len(word) <= LONGEST_PREFIX <= len(following) and word.islower() and (word + following).isalpha():
            terms |= dict.fromkeys(in_english(word + following) if terms else ())
        found += terms
    return tuple(found)


def _words(text: str, *, of_query: bool = False) -> list[str]:
    if text.isascii():
        words = _ASCII_WORD.findall(text)
    elif _BY_LETTERS.search(text) is None:
        words = _WORD.findall(text)
    else:
        words = [word for _, _, word in _spans(text, 0, len(text), of_query)]
    if not _CAPITALS.isdisjoint(words) and (quiet := _LINE.sub(_without_shouting, text)) != text:
        return _words(quiet, of_query=of_query)
    if max(map(len, words), default=0) > MAX_WORD_CHARACTERS:
        cut = (_HYPHENS.split(word) if len(word) > MAX_WORD_CHARACTERS else (word,) for word in words)
        return [word[:MAX_WORD_CHARACTERS] for word in chain.from_iterable(cut)]
    return words


def _without_shouting(line: re.Match[str]) -> str:
    """A line of capitals in small letters, of the same length."""
    return line[0].translate(_SMALL) if line[0].isupper() and len(line[0].split()) >= SHOUTED else line[0]


def _spans(text: str, start: int, end: int, of_query: bool = False) -> Iterator[tuple[int, int, str]]:
    """(start, end, word) of each word, in characters of `text`; pairs and single letters where words have no blanks."""
    by_letters = _BY_LETTERS.search(text, start, end) is not None
    for found in _WORD.finditer(text, start, end):
        if not by_letters or _BY_LETTERS.search(found[0]) is None:
            yield *found.span(), found[0]
            continue
        for run in _RUN.finditer(text, *found.span()):
            letters = [letter.span() for letter in _LETTER.finditer(text, *run.span())]
            if len(letters) == 1 or not _IS_UNSPACED.match(run[0]):
                yield *run.span(), run[0]
                continue
            is_han = [False, *(_IS_HAN.match(text, first) is not None for first, _ in letters), False]
            for at, (first, last) in enumerate(letters):
                if is_han[at + 1] and not (of_query and (is_han[at] or is_han[at + 2])):
                    yield first, last, text[first:last]
                if at + 1 < len(letters):
                    yield first, letters[at + 1][1], text[first : letters[at + 1][1]]


@lru_cache(len(_BY_LANGUAGE) + 1)
def _analysis_by(stemmer: str | None) -> Callable[[str], tuple[int, ...]]:
    size = CACHED_WORDS if stemmer is None else CACHED_WORDS_OF_OTHERS
    return lru_cache(size)(partial(_terms_of_word, stemmer))


def _analysis(language: str) -> Callable[[str], tuple[int, ...]]:
    """The terms of one word of a text in this language, cached."""
    return _analysis_by(_BY_LANGUAGE.get(language))


def _terms_of_word(of_language: str | None, word: str) -> tuple[int, ...]:
    if len(parts := _HYPHENS.split(word)) > 1:
        terms = tuple(chain.from_iterable(map(_analysis_by(of_language), parts)))
        whole = _joined(word)
        return terms if whole is None else (*terms, whole)
    plain = _bare(plain_letters(word))
    if plain.lower() in _STOP_WORDS and plain not in _CAPITALS:
        return ()
    stems = dict.fromkeys(_stems(plain))
    if of_language is not None and max(plain, default="") < "\u0250":
        accented = _bare(normalize("NFC", word).replace("’", "'").lower())
        stems |= {plain_letters(stem): None for stem in _stemmed(of_language, [accented])}
    return tuple(zlib.crc32(stem.encode("utf-8", "replace")) for stem in stems)


def _joined(word: str) -> int | None:
    """The term of a compound as a whole; None for a number, a date, a long chain."""
    parts = _HYPHENS.split(word)
    whole = "".join(parts).lower()
    if len(parts) > MOST_COMPOUNDED or whole.isdigit() or len(_DIGITS.findall(whole)) > 1:
        return None
    return next(iter(_terms_of_word(None, whole)), None)


def _bare(word: str) -> str:
    """`John` of `John's`, `eau` of `l'eau`."""
    return _ELISION.sub("", _POSSESSIVE.sub("", word)) if "'" in word else word


def _stems(plain: str) -> list[str]:
    """The stems of a word in plain letters, its own first."""
    if plain.isascii():
        parts = _PART.findall(plain) if len(_DIGITS.findall(plain)) <= 1 else []
        return _stemmed("english", [part.lower() for part in ([plain, *parts] if len(parts) > 1 else [plain])])
    plain = plain.casefold().translate(_DEVANAGARI)
    if _IS_HANGUL.fullmatch(plain):
        noun = _PARTICLE.sub("", plain)
        pairs = [first + second for first, second in pairwise(noun)] or [noun]
        return [plain, *pairs] if len(plain) <= 2 else pairs
    stemmer = next((stemmer for first, last, stemmer in _BY_SCRIPT if first <= plain[0] <= last), "english")
    stems = _stemmed(stemmer, [plain])
    if stemmer == "hindi" and len(_LETTER.findall(stems[0])) < SHORTEST_HINDI:
        stems = [plain]  # पानी is not पान
    return [*stems, plain[1:]] if _HEBREW_PREFIX.match(plain) else stems


def _stemmed(stemmer: str, words: list[str]) -> list[str]:
    with _STEMMING:
        stems: list[str] = _stemmer(stemmer).stemWords(words)
    return stems


@cache
def _stemmer(name: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(name)
