"""Which fields of a header, a list or a table relate a document to something, by their name and the form of the value.

A field relates where it names persons, other documents, or one of a few classes of documents. Fields that say how to
show a document do not, whatever program shows it: they hold booleans, positions, paths, other forms of the title.
"""

import re

from indexer.extraction.lexicon import word_set
from indexer.extraction.names import kind_of, name_of
from indexer.extraction.prose.predicates import NOUNS
from schemas.predicates import PREDICATE_STRENGTHS

MAX_CATEGORY_WORDS = 6
MAX_UNLISTED_WORDS = 3
MAX_PERSON_WORDS = 5
MAX_UNLISTED_CHARACTERS = 40
LISTED_CONFIDENCE = 1.0
UNLISTED_CONFIDENCE = 0.6  # of fields outside the lists, by the form of their value alone

# Fields that hold a list of persons.
PERSONS = word_set(
    """author authors contributor contributors creator editor editors maintainer maintainers reviewer sponsor sponsors
    delegate delegates translator"""
)
# Fields that name other documents; a bare number there is a number of the document's own series.
DOCUMENTS = word_set(
    """requires replaces superseded_by supersedes obsoletes obsoleted_by updates updated_by depends_on extends
    implements related related_to see_also part_of parent replaced_by amends amended_by"""
)
# Fields that hold a list of short values.
LISTS = word_set("topic tag keyword category python_version version language")
CLASSES = word_set(
    """owner owners team teams status state type kind category topic tag keyword area component platform product project
    program group department organisation organization company publisher journal venue series language license licence
    country city location region stage phase severity priority audience domain subject genre assignee reporter approver
    approvers approved_by reviewed_by reviewers decider deciders consulted informed stakeholder stakeholders client
    customer supplier vendor lead leads manager runs_on written_in hosted_on hosted_by used_by uses maintained_by
    owned_by created_by managed_by produced_by founded_by located_in belongs_to successor predecessor environment tier
    service repository channel contact responsible accountable director cast composer founder headquarters industry"""
)
# What the value of such a field is.
_PERSONAL = PERSONS | word_set(
    """assignee reporter approver approvers approved_by reviewed_by reviewers decider deciders consulted informed
    director cast composer founder lead leads manager owner owners chair contact"""
)
_VALUE_TYPES = {
    "organisation": word_set(
        """team teams department organisation organization company publisher client customer supplier
        vendor"""
    ),
    "place": word_set("country city location region venue headquarters"),
    "work": DOCUMENTS | word_set("journal series"),
    "product": word_set("platform product project program service repository"),
}
_CATEGORIES = word_set("kind category topic tag keyword area component group domain subject genre industry")
_LITERAL_FIELDS = word_set(
    """status state type language license licence stage phase severity priority audience environment tier version
    python_version release since"""
)
_NUMBERED = word_set("version versions python_version release since")
_TIMES = word_set(
    """date year created published updated modified decided released decision_date last_modified last_updated lastmod
    created_at updated_at published_at release_date effective_date expires founded born died opened"""
)
# Parts of names of fields that say how a document is shown, found and sorted.
_PRESENTATION = re.compile(
    r"title|layout|template|theme|style|css|colou?r|icon|image|img|logo|weight|order|sort|menu|nav|sidebar|toc|draft|slug"
    r"|url|link|path|permalink|redirect|render|format|comment|math|highlight|hid(?:e|den)|show|display|cover|thumb"
    r"|excerpt|summary|description|body|text|content|charset|encoding|position|index|search|robots|card|class|widget"
    r"|(?:^|[._])(?:id|key|alias|aliases|lang|locale|generator|file|history|discussions?|resolution|params?|meta)(?:[._]|$)"
)
_LITERALS = word_set("true false yes no on off none null nil n/a na - tbd unknown todo")
_NOT_VALUE = re.compile(
    r"[a-z][a-z0-9+.-]*:/|www\.|\S+@\S+\.|[][{}<>;=$%*\\]|^[~./#]|\w/\w*/|\.[a-z]{2,4}$", re.IGNORECASE
)
_RELATION = re.compile(r"[a-z_]+_(?:by|of|in|on|to|from|at|with|for|into|through|under|over)")
_DATE = re.compile(r"\b[12]\d{3}\b")
_SENTENCE = re.compile(r"[a-z)]{2}[.!?]\s+\w")
_CATEGORY = re.compile(r"[^\W\d_][\w+#.'’ /-]*")
_DOCUMENT_ID = re.compile(r"[A-Z][A-Za-z]{1,9}[- #]?\d{1,6}")


def is_listed(field: str) -> bool:
    """Whether a normalised field, such as `superseded_by`, is one that relates wherever it is."""
    return field in PERSONS or field in DOCUMENTS or field in LISTS or field in CLASSES


def is_relation(field: str) -> bool:
    """Whether a normalised field says how two things are related: `depends_on`, `pollinated_by`, `owner`."""
    return is_listed(field) or field in PREDICATE_STRENGTHS or field in NOUNS or _RELATION.fullmatch(field) is not None


def type_of_value(field: str, value: str) -> str | None:
    """The type of what a field relates a document to: "" for a literal, such as a state, None where the field does not
    say. What has a name of its own has a capital, a person two: `platform team` owns something, too."""
    if field in _LITERAL_FIELDS or _is_time(field) or _is_numbered(field):
        return ""
    if field in _PERSONAL:
        words = value.split()
        return "person" if 1 < len(words) <= MAX_PERSON_WORDS and all(word[0].isupper() for word in words) else None
    if field in _CATEGORIES:
        return "concept"
    return next((kind for kind, fields in _VALUE_TYPES.items() if field in fields and not value.islower()), None)


def field_confidence(field: str, value: str, title: str) -> float:
    """How sure it is that (document, field, value) is a fact: 0 where the field relates nothing.

    `field` is normalised; `value` is one of its values as written; `title` that of the document.
    """
    words = value.split()
    if not words or value.lower() in _LITERALS:
        return 0.0
    if is_listed(field) or _is_time(field) or _is_numbered(field):
        return LISTED_CONFIDENCE if _has_its_form(field, value, words) else 0.0
    is_title = not set(name_of(value).split()) - set(name_of(title).split())
    if is_title or _PRESENTATION.search(field) or not _is_text(value, words):
        return 0.0
    return UNLISTED_CONFIDENCE if _is_name_or_category(value, words) else 0.0


def _has_its_form(field: str, value: str, words: list[str]) -> bool:
    """Whether a value of a listed field is what the field is for."""
    if field in PERSONS:
        return value.lower() != value and not _NOT_VALUE.search(value)
    if field in DOCUMENTS:
        return not _NOT_VALUE.search(value)
    if len(words) > MAX_CATEGORY_WORDS:
        return False
    if _is_numbered(field):
        return True
    return bool(_DATE.search(value)) if _is_time(field) else _is_text(value, words)


def _is_text(value: str, words: list[str]) -> bool:
    """Whether a value has letters, and is not a path, code or sentence."""
    is_sentence = bool(_SENTENCE.search(value)) or (value[-1] in ".!?" and len(words) > MAX_CATEGORY_WORDS)
    return not is_sentence and not _NOT_VALUE.search(value) and any(letter.isalpha() for letter in value)


def _is_numbered(field: str) -> bool:
    return field in _NUMBERED or field.rpartition("_")[2] in _NUMBERED


def _is_time(field: str) -> bool:
    return field in _TIMES or field.rpartition("_")[2] in ("date", "year")


def _is_name_or_category(value: str, words: list[str]) -> bool:
    if len(value) > MAX_UNLISTED_CHARACTERS:
        return False
    if _DOCUMENT_ID.fullmatch(value) or kind_of(name_of(value), value) in ("person", "organisation", "place"):
        return True
    return len(words) <= MAX_UNLISTED_WORDS and _CATEGORY.fullmatch(value) is not None
