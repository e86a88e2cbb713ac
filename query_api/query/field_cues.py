"""Words of a question that speak of fields, or ask for documents, and where they do."""

from collections.abc import Sequence

from indexer.extraction.lexicon import word_set
from query_api.index.text.phrases import Word, words_of

NEAR_WORDS = 3  # between a field's name and the value that it speaks of
_QUOTES = "\"'“”‘’«»`"

# Words that people put around fields, by the beginnings of the fields' names they speak of.
CUES = {
    "author": word_set("author authors authored by written wrote writer writers write propose proposed proposes"),
    "creator": word_set("author authors by created creator creators made"),
    "created": word_set("created written started begun dated"),
    "date": word_set("dated published appeared written date"),
    "published": word_set("published publication appeared dated"),
    "year": word_set("published year dated"),
    "delegate": word_set("delegate delegates delegated"),
    "sponsor": word_set("sponsor sponsors sponsored"),
    "editor": word_set("edited editor editors"),
    "tag": word_set("tagged"),
    "label": word_set("labelled labeled"),
}
# Words that ask for documents rather than say what they are about.
DOCUMENTS = word_set(
    """article articles document documents entries entry file files page pages paper papers pep peps piece pieces post
    posts proposal proposals publication publications record records report reports rfc rfcs text texts"""
)
FINDING = DOCUMENTS | word_set("called find get give list name named open read say says search show tell title titled")
ASKING = FINDING | word_set(
    """author authored authors created date dated id kind labelled marked names number published status type write
    writes written wrote year"""
)
# Fields that say what a document is about, which its text says better.
TOPICAL = word_set("keyword keywords tag tags topic topics subject subjects category categories label labels")
_CALLED = word_set("title titled called named")
_WHO = word_set("who whose whom")  # then a person is asked for, and none is given, but behind `by`


class Speaking:
    """A question's words, and which of them speak of which field."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self.words = words
        self.said = frozenset(word.text for word in words)

    def cued(self, field: str, first: int, last: int) -> bool:
        """Whether the question speaks of a field with the words `first..last`: by its name beside them, or as people
        do."""
        name = field.rpartition(".")[2]
        parts = {part.text for part in words_of(name)}
        parts |= {f"{part}s" for part in parts}
        beside = [*self.words[max(0, first - 1 - NEAR_WORDS) : last], *self.words[last : last + 1]]
        if parts & {word.text for word in beside}:
            return True
        said = self.said & {"by"} if self.said & _WHO else self.said
        return any(name.lower().startswith(begin) and cues & said for begin, cues in CUES.items())

    def called(self, first: int) -> bool:
        """Whether the word before is one that names are behind, as in `the page titled Terms`."""
        return first > 0 and self.words[first - 1].text in _CALLED

    def before_documents(self, last: int) -> bool:
        """Whether the word behind is one for documents, as in `withdrawn proposals`."""
        return last < len(self.words) and self.words[last].text in DOCUMENTS

    def marked(self, first: int, last: int) -> bool:
        """Whether the words stand in quotes, or are written with capitals where a sentence would not have them."""
        start, end = self.words[first].start, self.words[last - 1].end
        if start and self.text[start - 1] in _QUOTES and self.text[end : end + 1] in tuple(_QUOTES):
            return True
        return first > 0 and self.text[start].isupper()
