"""Query decomposition: a sentence split where one question ends and the next begins, as in `When was X born, and how
tall is Y?`.

By the forms of English questions alone, without a parser, and on the side of caution: what may as well be a relative
clause (`the actor who was born in A and who played B`), the second half of a predicate (`Who wrote and directed X?`), a
name (`Romeo and Juliet`), or a question that needs the one before to be understood (`and when did it end?`) is not
split off.
"""

import re
from collections.abc import Iterator, Sequence

MIN_WORDS = 3
MAX_SENTENCE = 1_000  # characters; each conjunction costs a scan of the rest
AUXILIARY_WITHIN = 5  # words after `how` or `what`: how many of the old houses are …

_BOUNDARY = re.compile(r"\s*(?:,\s*|;\s*)?\b(?:and|but|or)\s+(?:also\s+|then\s+)?|\s*;\s*")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|«[^»]*»")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

_PREPOSITIONS = frozenset({
    "about", "at", "by", "for", "from", "in", "into", "of", "on", "over", "since", "to", "under", "until", "with",
    "within",
})  # fmt: skip
_MAY_BE_RELATIVE = frozenset({"who", "whom", "whose", "which", "where", "when", "that"})
_QUESTION_WORDS = frozenset({"who", "whom", "whose", "which", "where", "when", "what", "why", "how"})
_BE_AND_HAVE = frozenset({"am", "is", "are", "was", "were", "has", "have", "had"})
_DO_AND_MODALS = frozenset({
    "do", "does", "did", "can", "could", "will", "would", "shall", "should", "may", "might", "must",
})  # fmt: skip
_AUXILIARIES = _BE_AND_HAVE | _DO_AND_MODALS
_ASKING = frozenset({
    "tell", "explain", "describe", "define", "say", "show", "find", "list", "give", "name", "look", "state", "please",
})  # fmt: skip
_BEGIN_A_SUBJECT = frozenset({
    "the", "a", "an", "this", "that", "these", "those", "my", "your", "our", "his", "her", "its", "their", "any",
    "all", "there",
})  # fmt: skip
_POINT_BACK = frozenset({
    "he", "him", "his", "she", "her", "hers", "it", "its", "they", "them", "their", "theirs", "this", "that", "these",
    "those", "former", "latter", "both",
})  # fmt: skip


def question_clauses(sentence: str) -> list[str]:
    """The questions that a sentence coordinates, in its own words, or the sentence alone."""
    names = [match.span() for match in _QUOTED.finditer(sentence)]
    clauses, start = [], 0
    for boundary in _BOUNDARY.finditer(sentence) if len(sentence) <= MAX_SENTENCE else ():
        if any(first < boundary.end() <= last for first, last in names):
            continue
        before, after = sentence[start : boundary.start()], sentence[boundary.end() :]
        after_comma = boundary.group().lstrip().startswith((",", ";"))
        if _is_question(before) and _is_independent(after, before, after_comma=after_comma):
            clauses.append(before.strip())
            start = boundary.end()
    return [*clauses, sentence[start:].strip()]


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _is_question(clause: str) -> bool:
    """Whether it begins as a question or a request does, and has more than its question word and a noun."""
    words = [word.lower() for word in _words(clause)]
    if len(words) < MIN_WORDS:
        return False
    if words[0] in _AUXILIARIES or words[0] in _ASKING:
        return True
    has_auxiliary = any(word in _AUXILIARIES for word in words)
    if words[0] in _PREPOSITIONS:
        return words[1] in _QUESTION_WORDS and has_auxiliary
    if words[0] in ("who", "whose"):
        return True
    return words[0] in _QUESTION_WORDS and (has_auxiliary or len(words) > MIN_WORDS)


def _is_independent(rest: str, before: str, *, after_comma: bool) -> bool:
    """Whether the text after a conjunction begins a question that can be understood without the one before."""
    written = list(_until_next(rest))
    words = [word.lower() for word in written]
    if len(words) < MIN_WORDS or written[0] != words[0]:
        return False  # a capital amid a sentence begins a name
    if not _POINT_BACK.isdisjoint(words) and all(word.islower() for word in written):
        return False
    earlier = [word.lower() for word in _words(before)]
    is_more_of_it = words[0] == earlier[0] and _may_be_of_the_same(words, earlier, after_comma=after_comma)
    if is_more_of_it and _is_cased(before) and not _is_cased(rest):
        return False  # Who was the writer of Alpha and who died in 2007?
    return _asks(words, earlier, has_subject=words[1] in _BEGIN_A_SUBJECT or not written[1].islower())


def _asks(words: Sequence[str], earlier: Sequence[str], *, has_subject: bool) -> bool:
    """Whether words begin as a question does; after an auxiliary, where its subject follows."""
    if words[0] in _AUXILIARIES:
        return has_subject and (words[0] in _DO_AND_MODALS or earlier[0] in _AUXILIARIES)
    after_preposition = words[0] in _PREPOSITIONS
    asking = words[after_preposition:]
    return asking[0] in _QUESTION_WORDS and (
        earlier[0] in _ASKING or _is_direct(asking, earlier, after_preposition=after_preposition)
    )


def _may_be_of_the_same(words: Sequence[str], earlier: Sequence[str], *, after_comma: bool) -> bool:
    """Whether words that begin as the question before them may add to what that one asks for.

    Not a question by its word order (`and when was the bridge opened`), nor, after a comma, what follows a deed:
    `Who designed Alpha, and who installed the lamps?`, but `Who was the writer of Alpha, and who died in 2007?`
    """
    if words[0] in ("when", "where"):
        return words[1] not in _AUXILIARIES
    if words[0] == "who" and after_comma:
        return earlier[1] in _AUXILIARIES
    return words[0] in _MAY_BE_RELATIVE


def _is_cased(text: str) -> bool:
    """Whether a word after the first one has a capital, as names do where they are written with care."""
    return any(not word.islower() and not word.isdecimal() for word in _words(text)[1:])


def _is_direct(words: Sequence[str], earlier: Sequence[str], *, after_preposition: bool) -> bool:
    """Whether words that begin with a question word ask, rather than speak of something that was named earlier."""
    head, following = words[0], words[1]
    if after_preposition or head == "how":
        return following in ("many", "much") or not _AUXILIARIES.isdisjoint(words[1:-1][:AUXILIARY_WITHIN])
    if head in ("when", "where", "why"):
        return following in _AUXILIARIES
    return head == "what" or _MAY_BE_RELATIVE.isdisjoint(earlier[1:])


def _until_next(rest: str) -> Iterator[str]:
    """The words up to the next conjunction that is followed by a question word, or to the end."""
    words = _words(rest)
    for at, word in enumerate(words):
        if word.lower() in ("and", "but", "or") and at + 1 < len(words) and words[at + 1].lower() in _QUESTION_WORDS:
            return
        yield word
