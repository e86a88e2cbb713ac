"""What can be a name by its form, in prose and in technical texts."""

import pytest

from indexer.extraction.name_form import (
    begins_sentence,
    is_calendar_time,
    is_heading,
    is_no_person,
    is_reference,
    kind_of_code,
    kind_of_thing,
    whole_amount,
    whole_name,
)


def kept(text: str, span: str) -> str | None:
    """What is left of the first place of the span."""
    start = text.index(span)
    bounds = whole_name(text, start, start + len(span))
    return text[slice(*bounds)] if bounds else None


def kept_amount(text: str, span: str) -> str | None:
    start = text.index(span)
    bounds = whole_amount(text, start, start + len(span))
    return text[slice(*bounds)] if bounds else None


@pytest.mark.parametrize(
    "name",
    [
        "Anna Petrova", "U.S.", "Acme Inc.", "Star Wars: Episode IV", "Joseph - Octave", "AC/DC", "Yahoo!", "Java 15",
        "2010 Winter Olympics", "PyModuleDef_Slot", "blake2b", "東京大学", "With or Without You", "US", "HTTP/2", "iOS",
    ],
)  # fmt: skip
def test_names_stay_as_they_are(name: str) -> None:
    assert kept(f"They know {name} well.", name) == name


@pytest.mark.parametrize(
    ("text", "span", "name"),
    [
        ("made by - Anna Petrova - in Omsk", "- Anna Petrova -", "Anna Petrova"),
        ("It came from Omsk.", "Omsk.", "Omsk"),
        ("resumed with Last-Event-ID alone", "Event-ID", "Last-Event-ID"),
        ("a header Retry-After, too", "Retry", "Retry-After"),
        ("a Sydney-based club", "Sydney", "Sydney"),
        ("the Stable Interface as it is", "Stable Interface as", "Stable Interface"),
    ],
)
def test_bounds_are_repaired(text: str, span: str, name: str) -> None:
    assert kept(text, span) == name


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("see docs.omsk.org/club for it", "omsk"),
        ("the file src/Club/open.py is read", "Club"),
        ("call Club(name) now", "Club"),
        ("set Club.name first", "Club"),
        ("Omsk | 12 | 13", "Omsk | 12"),
        ("the version 2.2.0 of it", "2.2.0"),
        ("commit 517c1e2 of it", "517c1e2"),
        ("run it --Club now", "Club"),
        ("it SHOULD be so", "SHOULD"),
        ("it is True there", "True"),
        ("a metropolitan area", "metropolitan"),
        ("Anna\nStatus", "Anna\nStatus"),
        ("a line\nclub = Omsk(1)\nmore", "Omsk"),
        ("a line\n    Omsk lies there\nmore", "Omsk"),
        ("if (Omsk == 3) {", "Omsk"),
        ("the letter A alone", "A"),
        ("he said (Omsk and left", "(Omsk"),
        ("-- ", "-- "),
    ],
)
def test_what_is_no_name_by_its_form(text: str, span: str) -> None:
    assert kept(text, span) is None


def test_a_long_line_is_prose_whatever_its_signs() -> None:
    assert kept(f"They live in Omsk == 3. {'Long it is. ' * 40}", "Omsk") == "Omsk"


@pytest.mark.parametrize(
    ("text", "span", "amount"),
    [
        ("in 1998, then", "1998", "1998"),
        ("made 05-Sep-2017 there", "Sep-2017", "05-Sep-2017"),
        ("on 2026-08-04 at last", "2026", "2026-08-04"),
        ("from 1990-1995 on", "1990", "1990-1995"),
        ("in mid-January then", "January", "January"),
        ("the release 2.2.0 of it", "2.2", None),
        ("the release 3.14 of it", "14", None),
        ("in lists/2016-January/0001", "2016", None),
        ("due 12-02 or so", "12", None),
    ],
)
def test_amounts_are_whole_or_nothing(text: str, span: str, amount: str | None) -> None:
    assert kept_amount(text, span) == amount


@pytest.mark.parametrize("time", ["1998", "March 1998", "05-Sep-2017", "the 19th century", "1990s", "44 BC", "May"])
def test_a_place_in_the_calendar(time: str) -> None:
    assert is_calendar_time(time)


@pytest.mark.parametrize("time", ["ten minutes", "2.5 years", "Tuesday", "3.14", "12-02", "3000"])
def test_no_place_in_the_calendar(time: str) -> None:
    assert not is_calendar_time(time)


@pytest.mark.parametrize(
    ("text", "begins"),
    [("Omsk", True), ("It is. Omsk", True), ("a\nOmsk", True), ("- Omsk", True), ("| Omsk", True), ("in Omsk", False)],
)
def test_where_a_sentence_a_line_or_a_cell_begins(text: str, begins: bool) -> None:
    assert begins_sentence(text, text.index("Omsk")) is begins


@pytest.mark.parametrize(
    ("text", "span", "kind"),
    [
        ("the 2002 Winter Olympics there", "2002 Winter Olympics", "event"),
        ("since Python 3.11 it is", "Python 3.11", "product"),
        ("as PEP 465 says", "PEP 465", ""),
        ('he sang " Heron " there', "Heron", "work"),
        ("he wrote “Heron,” too", "Heron", "work"),
        ('he has 7" Heron discs', "Heron", ""),
        ("the Heron Theorem holds", "Heron Theorem", "concept"),
        ("the Heron Suite was sung", "Heron Suite", "work"),
        ("a War is not it", "War", ""),
        ("the Heron open source", "Heron open", ""),
        ("Heron", "Heron", ""),
    ],
)
def test_what_a_thing_is(text: str, span: str, kind: str) -> None:
    start = text.index(span)
    assert kind_of_thing(text, start, start + len(span)) == kind


@pytest.mark.parametrize("surface", ["0002 Order", "MuSiQue 79.1", "rrf-3 0.015", "rrf-3 0.", "Python-X.Y", "PEP NNNN"])
def test_measures_and_placeholders_are_no_names(surface: str) -> None:
    assert whole_name(f"It is {surface} here", 6, 6 + len(surface)) is None


@pytest.mark.parametrize(
    ("surface", "entity_type", "kind"),
    [
        ("MAX_WAIT", "place", "identifier"),
        ("sys.path", "thing", "identifier"),
        ("maxBytes", "organisation", "identifier"),
        ("PEP 8", "person", "identifier"),
        ("SHA-256", "organisation", "identifier"),
        ("US 31", "place", ""),
        ("Heron 8", "organisation", ""),
        ("LanceDB", "thing", ""),
        ("Ann", "person", ""),
    ],
)
def test_names_of_code_and_of_series_are_known_by_their_form(surface: str, entity_type: str, kind: str) -> None:
    assert kind_of_code(surface, entity_type) == kind


def test_a_line_of_its_own_is_a_heading() -> None:
    text = "- Rejected Ideas\n- Rejected Ideas are many\nRejected"
    assert is_heading(text, 2, 16)
    assert not is_heading(text, 19, 33)
    assert not is_heading(text, 44, 52)
    assert is_heading("Python-Version: 3.2", 0, 14)
    assert is_heading("Status: Draft", 8, 13)
    assert not is_heading("Status: Draft of Ann", 8, 13)
    assert not is_heading("By Ann: it holds", 3, 6)


@pytest.mark.parametrize(
    ("text", "span", "name"),
    [
        ("They sail from Omsk. Boats are cheap", "Omsk. Boats", "Omsk"),
        ("call it LOAD_BOATS. Omsk has it", "LOAD_BOATS. Omsk", "LOAD_BOATS"),
        ("it met Dr. Holt there", "Dr. Holt", "Dr. Holt"),
        ("(Status: Heron)", "Status: Heron", "Heron"),
        ("the Omsk Guide: The basics", "Omsk Guide: The", "Omsk Guide"),
        ("he asked why Omsk froze", "why Omsk", "Omsk"),
        ("the Omsk operating systems are old", "Omsk operating", "Omsk"),
        ("the Omsk civil war followed", "Omsk civil war", "Omsk civil war"),
        ("the Heron theorem holds", "Heron theorem", "Heron theorem"),
        ("the BOAT_RATE variable is read", "BOAT_RATE variable", "BOAT_RATE"),
        ("See Omsk for it", "See Omsk", "Omsk"),
        ("their record, See Omsk, sold well", "See Omsk", "See Omsk"),
        ("as RFC 9999 Boats says", "RFC 9999 Boats", "RFC 9999"),
        ("link .2 (Heron 1.9), else .3", "Heron 1.9", "Heron"),
        ("since Heron 1.9 it floats", "Heron 1.9", "Heron 1.9"),
        ("the file boats.BOAT_RATE. It is", "boats.BOAT_RATE.", "boats.BOAT_RATE"),
    ],
)
def test_a_span_over_several_phrases_keeps_the_name_alone(text: str, span: str, name: str) -> None:
    assert kept(text, span) == name


@pytest.mark.parametrize(
    "name", ["Heron Boats: A Life", "Ham", "MySQL", "Yahoo!", "Foo Fighters", "Tea for Two", "0-60"]
)
def test_what_looks_like_several_phrases_or_a_placeholder_and_is_none(name: str) -> None:
    assert (kept(f"They know {name} well.", name) or name) == name


@pytest.mark.parametrize(
    "name", ["FOO_RATE", "FooBoat", "MyList", "my_class", "MyDict", "SpamEggs", "foo2", "arg1", "someList", "moduleA"]
)
def test_placeholders_of_examples_are_no_names(name: str) -> None:
    assert kept(f"They know {name} well.", name) is None


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("in Section 4.2 of it", "Section 4.2"),
        ("in Appendix C of it", "Appendix C"),
        ("made 15-Nov-2022 there", "Nov-2022"),
        ("the Boat wave_rate is high", "Boat wave_rate"),
        ("true of A if B is", "A if B"),
        ("you MUST ALWAYS do it", "MUST ALWAYS"),
        ("Waves × Boats are read", "Waves × Boats"),
        ("it shows the Stopped! message.", "Stopped! message"),
        ("call Boat() or so", "Boat()"),
        ("the tracker [BOATS]. It is", "BOATS"),
        ("calls of Boat_Set* are", "Boat_Set"),
        ("as *Boats is bound", "Boats"),
        ("of draft-boats-99 only", "boats-99"),
        ("upper case 0XAF is odd", "0XAF"),
        ("allows 1.7.0.post3 too", "1.7.0.post3"),
        ("for [T, S] it is", "T, S"),
        ("where b1.speed is high", "b1.speed"),
        ("in Waves Built-in Types", "Waves Built"),
    ],
)
def test_pieces_of_code_and_of_documents_are_no_names(text: str, span: str) -> None:
    assert kept(text, span) is None


@pytest.mark.parametrize(
    ("text", "refers"),
    [
        ("it is so (see Omsk)", True),
        ("as described in the Omsk section", True),
        ("the Omsk section tells", True),
        ('the field "Omsk" is', True),
        ("he lives in Omsk now", False),
        ("he can see the town of Omsk", False),
    ],
)
def test_a_part_of_a_document_is_referred_to(text: str, refers: bool) -> None:
    start = text.index("Omsk")
    assert is_reference(text, start, start + 4) is refers


@pytest.mark.parametrize("surface", ["Ctrl-C", "QueryPlan", "SIGTERM", "Boats.Speed", "Ctrl+C", "Heron2"])
def test_what_is_no_person_by_its_form(surface: str) -> None:
    assert is_no_person(surface)


@pytest.mark.parametrize("surface", ["Holt", "McHolt", "DeHolt", "O'Holt", "Anna Petrova", "Anna-Maria", "JP"])
def test_what_may_be_a_person_by_its_form(surface: str) -> None:
    assert not is_no_person(surface)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("It writes 1.6 MB a day.", "1.6 MB"),
        ("The pump takes 7 kW here.", "7 kW"),
        ("As Art. 9 says, no.", "Art"),
        ("As Art. 9 says, no.", "Art. 9"),
        ("See Figure 1 for it.", "Figure 1"),
        ("Docs / Reference / Webhooks", "Docs / Reference"),
        ("We meet on Monday again.", "Monday"),
        ("Then Rotate tokensExport went.", "Rotate tokensExport"),
        ("Then I'll see Ms there.", "Ms"),
    ],
)
def test_amounts_parts_and_pieces_of_pages_are_no_names(text: str, span: str) -> None:
    start = text.index(span)
    assert whole_name(text, start, start + len(span)) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("GATE-63 storage 2.6.0", "GATE-63"),
        ("Ticket HELP-4672", "HELP-4672"),
        ("Amos: I am sorry", "Amos"),
        ("Harry Potter: Chamber of Secrets", "Harry Potter: Chamber of Secrets"),
        ("Apple iPhone", "Apple iPhone"),
    ],
)
def test_words_around_a_code_or_a_speaker_are_left_out(text: str, name: str) -> None:
    bounds = whole_name(f"So {text}, yes.", 3, 3 + len(text))
    assert bounds is not None
    assert f"So {text}, yes."[slice(*bounds)] == name
