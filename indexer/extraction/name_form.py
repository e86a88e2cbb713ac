"""Which tagged spans can be names, by their form and by what is around them.

The tagger learnt from edited prose. In technical texts it also marks code, table cells, numbers and pieces of
identifiers; these rules know them by their form, in any language's letters. None speaks of a single site or format.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from indexer.extraction.lexicon import (
    ABBREVIATIONS,
    CLOSING_NOUNS,
    CONCEPT_WORDS,
    CONNECTORS,
    DAYS,
    EVENT_WORDS,
    KINDS_IN_CODE,
    MONTHS,
    PLACE_WORDS,
    PLACEHOLDERS,
    SENTENCE_STARTERS,
    STOP_WORDS,
    UNMISTAKABLE_PLACEHOLDERS,
    WORK_WORDS,
    word_set,
)
from indexer.extraction.names import PART
from indexer.extraction.word_use import is_common_word

MAX_LINE = 400  # longer ones are prose
CACHED_LINES = 1024

_EDGE = " \t-–—|*·•:;,/←→│─"
_SIGNS = re.compile(  # of code and tables
    r"[|<>{}\[\]=*;\\^~`@$│─←→▶◀§≤≥…Σ·×÷±\n\r\t]|--|::| / |(?<!\S)-\w|\.\.| [+] |:\S|/[a-z.]|/$|^/|_$|^[#+%]|\(\)"
    r"|[!?] [a-z]|%[a-z]| _|^\d+\.\d+[./]|^[A-Za-z], [A-Za-z]$|^[a-z]{1,2}\d\.[a-z]|^[A-Z]\.\w+_|_\w* \w*_| [a-z]+_\w"
    r"| [a-z]{3,}[A-Z][a-z]"
)
_GLUE_BEFORE = tuple("/\\@#$=~_.%&+<*")
_GLUE_BEHIND = tuple("/\\@#$=~_(%&+>{[*")
_HASH = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|(?=[a-f]*\d)[0-9a-f]{6,}|\w*_?(?=[a-f]*\d)[0-9a-f]{12,})\b")
_LITERALS = word_set("true false none null nil nan n/a na yes no ok todo tbd tba undefined")
_ROMAN = re.compile(r"[IVX]+")
_VARIABLE = re.compile(rf"(?:{'|'.join(sorted(KINDS_IN_CODE))})\d+")
_YEAR = re.compile(r"(?<![\w.,:/-])(?:1\d{3}|20\d{2})(?:s|\s*[-–/]\s*\d{2,4})?(?!\w|[.:/-]\d)")
_MONTH_WORD = rf"(?:{'|'.join(sorted(MONTHS))})"
_MONTH_OF_YEAR = re.compile(rf"{_MONTH_WORD}-\d{{4}}", re.IGNORECASE)
_MONTH = re.compile(rf"\b{_MONTH_WORD}\b", re.IGNORECASE)
_MEASURED = re.compile(r"^0\d+ |(?:^| )[-+]?(?:0?\.\d|0\.|\d{2,}\.\d|\d+\.\d* )")  # not a version at the end
_PLACEHOLDER = re.compile(r"\b(?:X\.Y|N{3,}|X{3,})")
_CODE_NAME = re.compile(
    r"\w*_\w*|[a-z]\w*\.[a-z][\w.]*|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z](?:Error|Exception|Warning)s?|[A-Z]{2,6}-\d{2,}"
)
_SEE = "See "
_CODE_WITH_WORDS = re.compile(r"(?:[A-Z][a-z]+ )?(?P<kept>\w+_\w+)(?: [a-z]+)*")
_NUMBER_WITH_WORDS = re.compile(r"(?:[A-Z][a-z]+ (?=[A-Z]{2,6}-))?(?P<kept>[A-Z]{2,6}[ -]\d{2,})(?: [^\W_][\w.]*)*")
_AMOUNT = re.compile(r"(?:[a-z]+ of )?\d[\d.,]* [^\W\d]{1,3}\.?")
_SAID = re.compile(r"\d+\.\d|(?:I|We|You|It|There|Let) [a-z]")
_DAY = re.compile(rf"(?:{'|'.join(sorted(DAYS))})s?|(?:mon|tue|wed|thu|fri|sat)\.?", re.IGNORECASE)
_BRAND = re.compile(r"(?=\w{5})[A-Z]\w*[a-z]\w*[A-Z]\w*|[A-Z][a-z]+-?\d+")
ACRONYM = re.compile(r"[A-Z]{2,6}s?")
CLASS = re.compile(r"(?<=[a-z_]\.)[A-Z]\w*[a-z]\w*|(?<![\w.])[A-Z]\w*[a-z]\w*(?=\((?! )|\[[A-Za-z])")
_ITEM = re.compile(r"\s*(?:[-*•>]|\d{1,3}[.)])?\s*(?P<label>[A-Z][\w -]{0,30}: )?")
_PARTICLE_JOINED = re.compile(r"(?:Mac|Mc|De|Del|Di|Du|La|Le|Van|Von|Fitz|O)[A-Z]")
_DOTTED_WORDS = re.compile(r"[a-z]{2}\.[^\W\d_]")
_SHORTEST_ACRONYM = 3
_CENTURY = re.compile(r"\bcentur(?:y|ies)\b|\b\d0s\b|\b(?:BC|AD|BCE|CE)\b")
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}-{_MONTH_WORD}-\d{{4}}|\d{{4}}-\d{{4}}", re.IGNORECASE)
_CODE = re.compile(
    r"[{};]\s*$|^\s*(?:>>>|\.\.\.|\$ |#!|#\s?(?:define|include)|//|/\*|\*/|def |class \w+[(:]|import \w)"
    r"|^\s*from [\w.]+ import|\w\([^()]*\)\s*(?:[:;{]|->)|[!=<>+*]=|\b\w+ = \S|\s--?[A-Za-z][\w-]*|\bhttps?://"
    r"|\w::\w|\bcurl\b|\$\{?\w"
)
_SENTENCE_END = re.compile(r"(?<=[^\W_]{2})[.;] +(?=\S)")
_FIGURE = re.compile(r"(?<![\w.])[+-]?\.\d")  # a measure without the nought that a version has
_NUMBER_BEHIND = re.compile(r"(?: [\d.]+)+$")
_GOES_ON = re.compile(r" (?P<word>[a-z]{2,})(?![\w.])")
_NOT_FIRST = STOP_WORDS - word_set("the one two first last former")
_QUOTES = tuple("\"'“”‘’«»„")
_REFERS_BEFORE = re.compile(
    r"\b(?:see(?: also)?|sections?|chapter"
    r"|(?:described|explained|mentioned|listed|discussed|defined|shown|addressed|outlined|covered) (?:in|under))"
    r"(?: the)?(?: section)?(?: on)? [\"'“‘]?$",
    re.IGNORECASE,
)
_REFERS_BEHIND = re.compile(r"[\"'”’]?(?: and [\"'“]?\w+[\"'”]?)? (?:sections?|chapters?|pages?|below|above)\b")
_CLOSING = CLOSING_NOUNS | EVENT_WORDS | PLACE_WORDS
_POSSESSIVE_OF_NAME = re.compile(r"['’]s [A-Z]")
_LETTERED = re.compile(r"\b([a-z]{3,})[A-Z]\b")
_CASE_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NUMBERED = re.compile(r"[A-Z]{2,6}[ -]?\d+(?:[-.]\d+)*")
_VERSION = re.compile(r"[^\W\d]\w* \d+(?:\.\d+)+\+?$|^[A-Z]\w*[a-z][A-Z]\w* \d+$")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_WORD = re.compile(r"[^\W\d_]+")
_NUMBERED_ITEM = re.compile(r"(?:^|[.\n]\s*)\(?\w{1,2}\)$")
_LONGEST_INITIALS = 4  # with their last full stop: `Jr.`, `U.S.`
_COMPOUND_BEFORE = re.compile(r"(?<![\w-])(?:[A-Z][\w]*-)+$")
_COMPOUND_BEHIND = re.compile(r"(?:-[A-Z]\w*)+(?!\w)")


def whole_name(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The bounds of a name without what is around it, and with the rest of a compound (`Last-Event-ID`).

    Left out at its ends are punctuation, a label (`Status: `), the next sentence, common words that begin or end it,
    the beginning of words that go on behind it, and a measure.

    None where its form, or what it is part of, is not a name's: what is glued to more (`python` of `python.org`), holds
    signs of code or of tables, is mostly digits, a hash, a literal, a placeholder of examples or common words, has
    neither a capital nor a digit among its letters, or is in a line of code.
    """
    start, end = _trimmed(text, *_one_phrase(text, *_trimmed(text, start, end)))
    if start >= end:
        return None
    if text.startswith("-", start - 1) and (before := _COMPOUND_BEFORE.search(text[max(0, start - 60) : start])):
        start -= len(before[0])
    if text.startswith("-", end) and (behind := _COMPOUND_BEHIND.match(text, end)):
        end = behind.end()
    part = PART.match(text, start)  # `Art` of `Art. 9`
    is_piece = _is_glued(text, start, end) or (part is not None and part.end() >= end and not part[0].isalpha())
    return None if is_piece or not is_name(text[start:end]) or _is_code(text, start, end) else (start, end)


def whole_amount(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The bounds of a number or a time, with the rest of a date (`05-Sep-2017`). None where it is glued to more, as
    `2.2` in `2.2.0` and `12` in `12-02`."""
    start, end = _trimmed(text, start, end)
    low, high = start, end
    while low > 0 and (text[low - 1].isalnum() or text[low - 1] == "-"):
        low -= 1
    while high < len(text) and (text[high].isalnum() or text[high] == "-"):
        high += 1
    if start >= end or "\n" in text[start:end] or _is_glued(text, low, high):
        return None
    if _DATE.fullmatch(text, low, high):
        return low, high
    return (start, end) if (low, high) == (start, end) or text[start:end].isalpha() else None


def is_calendar_time(surface: str) -> bool:
    """Whether a time is a place in the calendar: a year, a month, a century; not `ten minutes` or `Tuesday`."""
    return any(form.search(surface) for form in (_YEAR, _MONTH, _CENTURY, _DATE))


def is_heading(text: str, start: int, end: int) -> bool:
    """Whether several words are all that is on their line, as in a heading or an item of contents; or a label is
    there, with a colon behind it, or all that follows a label."""
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    item = _ITEM.match(text, line_start, start)
    rest = text[end : len(text) if line_end < 0 else line_end]
    if item is None or item.end() != start:
        return False
    fills = not rest.strip(" .:") and (" " in text[start:end] or item["label"] is not None)
    return fills or (rest.startswith(": ") and item["label"] is None)


def is_reference(text: str, start: int, end: int) -> bool:
    """Whether a part of a document is referred to: `see Usage`, `the Usage section`; or a single word is quoted."""
    before, behind = text[max(0, start - 40) : start], text[end : end + 40]
    is_quoted = " " not in text[start:end] and before[-1:] in _QUOTES and behind[:1] in _QUOTES
    return bool(is_quoted or _REFERS_BEFORE.search(before) or _REFERS_BEHIND.match(behind))


def kind_of_code(surface: str, entity_type: str) -> str:
    """`identifier` for names of code (`snake_case`), and of series where no place or work is tagged (`PEP 8`,
    `ISO 8601`); empty for others."""
    is_series = entity_type in ("person", "organisation", "thing") and _NUMBERED.fullmatch(surface)
    return "identifier" if is_series or _CODE_NAME.fullmatch(surface) else ""


def is_no_person(surface: str) -> bool:
    """Whether its form is not a person's: one word with digits, signs or capitals inside (`Ctrl-C`, `QueryPlan`), but
    for particles (`McDonald`), or of capitals alone."""
    if " " in surface or "'" in surface or "’" in surface:
        return False
    letters = surface.replace("-", "").replace(".", "")
    has_signs = not letters.isalpha() or surface.startswith("Ctrl-") or _DOTTED_WORDS.search(surface)
    is_brand = _BRAND.fullmatch(surface) and not _PARTICLE_JOINED.match(surface)
    return bool(has_signs or is_brand or (surface.isupper() and len(surface) >= _SHORTEST_ACRONYM))


def kind_of_thing(text: str, start: int, end: int) -> str:
    """What a thing is, by its last word, a version number, or quotation marks around it; empty where none shows it."""
    words = text[start:end].split()
    opening, closing = text[:start].rstrip(" ")[-1:], text[end:].lstrip(" ,.")[:1]
    is_quoted = opening and closing and opening in '"“«„' and closing in '"”»“'
    if is_quoted and not text[start:end].isupper():
        return "work"
    if _VERSION.search(text[start:end]) or _BRAND.fullmatch(text, start, end):
        return "product"
    if len(words) > 1:
        kinds = (("work", WORK_WORDS), ("event", EVENT_WORDS), ("concept", CONCEPT_WORDS))
        for kind, last_words in kinds:
            if words[-1].lower() in last_words and (kind != "event" or not words[-1].islower()):
                return kind
    return ""


def begins_sentence(text: str, start: int) -> bool:
    """Whether a line, a sentence, an item of a list or a cell of a table begins there."""
    before = text[max(0, start - 8) : start].rstrip(" \"'“‘(*_")
    return not before or before[-1] in ".!?:\n|-•·>" or _NUMBERED_ITEM.search(before) is not None


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without punctuation at the ends, common words in lower case at the end, and a sentence's full stop."""
    while True:
        while start < end and (text[start] in _EDGE or text[start] == "."):
            start += 1
        while start < end and text[end - 1] in _EDGE:
            end -= 1
        first, _, last = text[start:end].rpartition(" ")
        if last in STOP_WORDS and first:
            end = start + len(first)
        elif (
            len(last) > _LONGEST_INITIALS
            and last[-1] == "."
            and last[:-1] not in ABBREVIATIONS
            and (last[:-1].isalnum() or "_" in last)
        ):
            end -= 1
        else:
            return start, end


def _without_label(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without a label before a colon, or without what follows the colon where that is not a name."""
    label, colon, rest = text[start:end].partition(": ")
    is_said = _SAID.match(rest) or (rest[1:].islower() and rest.lower() in SENTENCE_STARTERS)
    if colon and (rest[:1].islower() or is_said):
        return start, start + len(label)
    is_label = bool(colon) and label.isalpha() and is_common_word(label)
    return start + (len(label) + len(colon) if is_label else 0), end


def _one_phrase(text: str, start: int, end: int) -> tuple[int, int]:
    """The first phrase of a span that reaches over several, and no piece of a phrase that continues behind it."""
    if sentence := _SENTENCE_END.search(text, start, end):
        word = text[start : sentence.start()].rpartition(" ")[2]
        is_abbreviated = word in ABBREVIATIONS or len(word) < _LONGEST_INITIALS
        end = end if is_abbreviated else sentence.start()
    start, end = _without_label(text, start, end)
    while (word := text[start:end].partition(" ")[0]) != text[start:end] and word.islower() and word in _NOT_FIRST:
        start += len(word) + 1
    if text.startswith(_SEE, start) and begins_sentence(text, start):
        start += len(_SEE)
    if kept := (_CODE_WITH_WORDS.fullmatch(text, start, end) or _NUMBER_WITH_WORDS.fullmatch(text, start, end)):
        start, end = kept.span("kept")
    if goes_on := _GOES_ON.match(text, end):
        end = start + len(_without_tail(text[start:end], goes_on["word"]))
    if (number := _NUMBER_BEHIND.search(text, start, end)) and _FIGURE.search(text, max(0, start - 200), end + 200):
        end = number.start()
    return start, end


def _without_tail(surface: str, following: str) -> str:
    """A name without the common nouns at its end where another one follows: `Omsk` of `Omsk operating systems`."""
    while following not in CONNECTORS | STOP_WORDS:
        shorter, _, last = surface.rpartition(" ")
        if not shorter or not last.islower() or last in _CLOSING or not is_common_word(last):
            break
        surface = shorter
    return surface


def _is_placeholder(surface: str) -> bool:
    """Whether it is a word by which examples name anything: `foo`, `FooBar`, `my_function`, `arg1`, `moduleA`."""
    if _VARIABLE.fullmatch(surface) or any(map(is_common_word, _LETTERED.findall(surface))):
        return True
    parts = [part.lower() for part in _CASE_PARTS.findall(surface)]
    if not parts or " " in surface:
        return len(parts) > 1 and PLACEHOLDERS.issuperset(parts)
    if parts[0] in ("my", "your", "some") and len(parts) > 1:
        return all(part in PLACEHOLDERS | KINDS_IN_CODE or is_common_word(part) for part in parts[1:])
    return (len(parts) > 1 and PLACEHOLDERS.issuperset(parts)) or not UNMISTAKABLE_PLACEHOLDERS.isdisjoint(parts)


def _is_in_lower_case(letters: Sequence[str]) -> bool:
    """Whether there is a capital of some letter, and none is one."""
    has_capital = any(letter != letter.lower() for letter in letters)
    return not has_capital and any(letter.upper() != letter.lower() for letter in letters)


def _has_signs_of_others(surface: str) -> bool:
    """Whether it has signs that no name has, or one of a pair."""
    if any(form.search(surface) for form in (_SIGNS, _HASH, _MEASURED, _PLACEHOLDER, _MONTH_OF_YEAR)):
        return True
    return surface.count("(") != surface.count(")") or surface.count('"') % 2 == 1


def is_name(surface: str) -> bool:
    """Whether a whole name may have this form."""
    letters = [sign for sign in surface if sign.isalpha()]
    digits = sum(sign.isdigit() for sign in surface)
    if len(letters) < 2 or _has_signs_of_others(surface) or surface.lower() in _LITERALS:
        return False
    if digits > len(letters) and not surface[0].isupper():
        return False
    if _is_in_lower_case(letters) and (not digits or " " in surface):
        return False
    if _is_placeholder(surface) or any(form.fullmatch(surface) for form in (PART, _ROMAN, _AMOUNT, _DAY)):
        return False
    return not _is_shouted(surface)


def _is_shouted(surface: str) -> bool:
    """Whether it is a word that may begin any sentence, or several common words in capitals (`MUST NOT`)."""
    words = _WORD.findall(surface)
    if surface.rstrip(".") in ABBREVIATIONS or surface.startswith(("I'", "I’")):
        return True
    if " " in surface and all(len(word) == 1 or word in STOP_WORDS for word in words):  # `A if B`
        return True
    if len(surface) <= 2 or not (len(words) == 1 or surface.isupper()):  # `US`, `IT`
        return False
    if " " in surface and all(len(word) > 2 and is_common_word(word) for word in words):
        return True
    return _NUMBERED.fullmatch(surface) is None and all(word.lower() in SENTENCE_STARTERS for word in words)


def _is_glued(text: str, start: int, end: int) -> bool:
    """Whether it is a piece of something longer without blanks: a path, an address, a call, a version."""
    before, behind = text[:start][-2:], text[end : end + 2]
    if before[-1:] == "[" and behind[:1] == "]":  # the key of a reference, or an index
        return True
    return _is_glued_before(before, text[start]) or _is_glued_behind(text, start, end)


def _is_glued_before(before: str, first: str) -> bool:
    """`before` are the two signs before, `first` the one that it begins with."""
    if before.endswith(":"):
        return len(before) > 1 and not before[0].isspace()
    if before.endswith("-"):
        return not (before[0].isalnum() and first.isupper())  # an option of a command
    return before.endswith(_GLUE_BEFORE)


def _is_glued_behind(text: str, start: int, end: int) -> bool:
    behind = text[end : end + 2]
    further = behind[1:].isalnum() or behind[1:] == "_"
    if behind.startswith(_GLUE_BEHIND) or (text[end - 1] == "." and behind[:1].isalnum()):
        return True
    if _POSSESSIVE_OF_NAME.match(text, end) and is_common_word(text[start:end].rpartition(" ")[2]):
        return True
    match behind[:1]:
        case "." | ";":
            return further
        case ":":
            return bool(behind[1:].strip())
        case "-":
            return further and not _may_begin_compound(text[start:end])
    return False


def _may_begin_compound(surface: str) -> bool:
    """Whether a name, and not a piece of it, is what a compound begins with: `Omsk` of `Omsk-based`, not `Types Built`
    of `Types Built-in`."""
    *before, last = surface.split()
    return last[:1].isupper() and not (before and is_common_word(last))


def _is_code(text: str, start: int, end: int) -> bool:
    """Whether its line is one of code, by its signs or by its indentation."""
    low = text.rfind("\n", 0, start) + 1
    high = text.find("\n", end)
    return _is_line_of_code(text[low : len(text) if high < 0 else high])


@lru_cache(CACHED_LINES)
def _is_line_of_code(line: str) -> bool:
    return len(line) <= MAX_LINE and bool(_CODE.search(line) or _INDENTED.match(line))
