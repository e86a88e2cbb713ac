"""Sentence segmentation of canonical text, by sentencex's rules for its language.

CLD2 detects the language; from Python 3.14 on, for which pycld2 has no wheels, py3langid does. They agree on prose, but
not on every mixture of languages.

A line of canonical text is a paragraph, a list item, a table row or a line of code, and no sentence crosses it: an edit
in one paragraph never moves the sentences of another.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import sentencex

try:
    import pycld2
except ImportError:
    pycld2 = None

DEFAULT_LANGUAGE = "en"
SAMPLE_CHARACTERS = 1_000
MIN_SHARE = 60  # percent of the text by CLD2; below, the text counts as one of several languages
MIN_PROBABILITY = 0.6  # by py3langid
WINDOW_CHARACTERS = 2_000  # sentencex takes quadratic time over thousands of unclosed quotation marks
CACHED_SAMPLES = 512  # of texts whose language was detected
CACHED_WINDOWS = 2_048  # lines of a long document; some 10 MB at most

_LANGUAGE_CODES = {"zh-Hant": "zh", "iw": "he", "jw": "jv", "nb": "no"}  # CLD2's → ISO 639-1
_LINE = re.compile(r"[^\n]+")
_STOP = re.compile(r"[.!?。！？।॥؟۔](?=\s)|[。！？]")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,4}|[A-Za-z])[.)]|[-*•]")
_FIRST_STOP = re.compile(r"[.!?]")  # what ends a sentence of ASCII characters by the rules for English
_ODD_BLANK = re.compile(r"[^\S ]")  # sentencex 1.0 fails on some that take several bytes
_GOES_ON = re.compile(r"[^\W\d_]")
_INITIAL = re.compile(r"(?:^|[\s(\[«„“])[^\W\d_a-z]\.$")


def language_of(text: str) -> str:
    """The language of a text by its first characters, as an ISO 639 code; `en` if it cannot be detected."""
    return _detected(text[:SAMPLE_CHARACTERS], best_effort=False)


def likely_language(text: str) -> str:
    """The same for a word or a few, of which it is the best guess."""
    return _detected(text[:SAMPLE_CHARACTERS], best_effort=True)


@lru_cache(CACHED_SAMPLES)
def _detected(text: str, *, best_effort: bool) -> str:
    sample = text.encode("utf-8", "replace")
    if pycld2 is None:
        code, probability = _langid().classify(sample.decode())
        return str(code) if best_effort or probability >= MIN_PROBABILITY else DEFAULT_LANGUAGE
    try:
        is_reliable, _, found = pycld2.detect(sample, isPlainText=True, bestEffort=best_effort)
    except pycld2.error:  # control characters, which CLD2 does not take for text
        return DEFAULT_LANGUAGE
    _, code, share, _ = found[0]
    return _LANGUAGE_CODES.get(code, code) if is_reliable and share >= MIN_SHARE else DEFAULT_LANGUAGE


@lru_cache(maxsize=1)
def _langid() -> Any:
    """Naive Bayes over byte n-grams (Lui and Baldwin 2012, "langid.py")."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def sentence_spans(
    text: str, start: int = 0, end: int | None = None, language: str = DEFAULT_LANGUAGE
) -> list[tuple[int, int]]:
    """The sentences of `text[start:end]` as (start, end) in characters of `text`, in order and stripped.

    `language` is an ISO 639 code; sentencex falls back to a related language, or to English. The index of a sentence in
    the list over the whole text is its document-wide number. Every character that is not whitespace is in exactly one
    sentence. Time is linear in the length.
    """
    spans: list[tuple[int, int]] = []
    is_english = language == DEFAULT_LANGUAGE
    for line in _LINE.finditer(text, start, len(text) if end is None else end):
        first = len(spans)
        if is_english and (whole := _one_sentence(text, line.start(), line[0])):
            spans += whole
            continue
        for window_start, window_end in _windows(text, line.start(), line.end()):
            for span in _split(text, window_start, window_end, language):
                if len(spans) > first and (
                    _ENUMERATOR.fullmatch(text, *spans[-1]) or (not is_english and _is_cut_short(text, spans[-1], span))
                ):
                    spans[-1] = (spans[-1][0], span[1])
                else:
                    spans.append(span)
    return spans


def _one_sentence(text: str, start: int, line: str) -> list[tuple[int, int]] | None:
    """The line as one sentence if none can end inside it, a fast path for most short lines; else None."""
    bare = line.strip()
    stop = _FIRST_STOP.search(bare)
    if not bare.isascii() or len(bare) > WINDOW_CHARACTERS or (stop and stop.end() < len(bare)):
        return None
    start = text.index(bare, start) if bare else start
    return [(start, start + len(bare))] if bare else []


def _is_cut_short(text: str, before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Whether a full stop ends no sentence: after an initial, or before a word in lower case.

    No list of rules has all abbreviations of a language. Not for English, whose list is long, and whose sentences may
    begin with names such as `pip`.
    """
    if text[before[1] - 1] != ".":
        return False
    following = text[after[0]]
    is_word = _GOES_ON.match(following) is not None
    return (is_word and following.islower()) or _INITIAL.search(
        text[max(before[0], before[1] - 4) : before[1]]
    ) is not None


def _windows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The line in pieces of bounded size, cut after a full stop if there is one, else at a blank, else anywhere."""
    while end - start > WINDOW_CHARACTERS:
        limit = start + WINDOW_CHARACTERS
        stops = [match.end() for match in _STOP.finditer(text, start + WINDOW_CHARACTERS // 2, limit)]
        cut = stops[-1] if stops else text.rfind(" ", start + WINDOW_CHARACTERS // 2, limit) + 1
        yield start, cut or limit
        start = cut or limit
    yield start, end


def _split(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    return ((start + first, start + last) for first, last in _sentences(text[start:end], language))


@lru_cache(maxsize=CACHED_WINDOWS)
def _sentences(window: str, language: str) -> tuple[tuple[int, int], ...]:
    """Cached, as chunking and sentence numbering both need each line."""
    window = _ODD_BLANK.sub(" ", window)
    found = []
    for boundary in sentencex.get_sentence_boundaries(language, window):
        piece = window[boundary["start_index"] : boundary["end_index"]]
        bare = piece.strip()
        if bare:
            at = boundary["start_index"] + len(piece) - len(piece.lstrip())
            found.append((at, at + len(bare)))
    return tuple(found)
