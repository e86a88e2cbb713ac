"""Search in the browser: hits stream in, a dropped stream goes on, keys walk the hits, the address holds it all."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.acceptance.console.conftest import SMALL, WIDE, Complaints, OpenPage, hits, load, overflow, serious_faults
from tests.support.processes.installation import Installation

QUESTION = "search?q=which+river+floods&collection=rivers"


def test_a_question_that_is_typed_brings_hits_with_what_they_say(open_page: OpenPage) -> None:
    page = open_page()
    question = page.get_by_role("searchbox", name="Question")
    expect(question).to_be_focused()
    question.fill("a heron pump lifts water")
    question.press("Enter")
    first = page.locator("article").first
    expect(first.get_by_role("heading", name="Issen")).to_be_visible()
    assert "q=a+heron+pump+lifts+water" in page.url
    assert {"heron", "pump", "lifts", "water"} <= set(first.locator("mark").all_inner_texts())
    expect(first.locator(".answer").first).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("keyword"))).to_contain_text("ms")
    expect(page.get_by_text("Retrieval", exact=True)).to_be_visible()


def test_opened_hit_shows_its_context_and_takes_feedback(open_page: OpenPage, console: Installation) -> None:
    parts = [f"## Part {n}\n\n" + f"The 🛶 boat number {n} waits at the pier. " * 30 for n in (1, 2, 3)]
    load(console, [{"id": "boats.md", "content": "# 🛶🛶 Boats\n\n" + "\n\n".join(parts)}], "boats")
    page = open_page("search?q=boat+number+2&collection=boats&k=1")
    hit = page.locator("article")
    expect(hit.locator("mark").first).to_have_text("boat")
    assert set(hit.locator("mark").all_inner_texts()) <= {"boat", "number", "2", "Boats"}
    hit.get_by_role("button", name="More").click()
    passage = hit.locator("p.passage").inner_text()
    hit.get_by_role("button", name="After it").click()
    expect(hit.locator("p.neighbour")).to_have_count(1)
    assert hit.locator("p.neighbour").inner_text() not in passage
    hit.get_by_role("button", name="Yes").click()
    expect(hit.get_by_text("Noted.")).to_be_visible()


def test_keys_walk_the_hits_and_open_them(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    hits(page)
    for key, place in (("j", 0), ("ArrowDown", 1), ("k", 0)):
        page.keyboard.press(key)
        expect(page.locator("article").nth(place)).to_be_focused()
    page.keyboard.press("Enter")
    first = page.locator("article").first
    expect(first.get_by_text("thalweg.documents.v1")).to_be_visible()
    page.keyboard.press("Enter")
    expect(first.get_by_text("thalweg.documents.v1")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Question")).to_be_focused()
    page.keyboard.type("/j")
    expect(page.get_by_role("searchbox", name="Question")).to_have_value("/j")


def test_slash_key_focuses_the_question_in_every_view(open_page: OpenPage) -> None:
    page = open_page("usage")
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    page.keyboard.press("/")
    question = page.get_by_role("searchbox", name="Question")
    expect(question).to_be_focused()
    page.keyboard.type("/a/b")
    expect(question).to_have_value("a/b")


def test_question_without_an_answer_shows_a_notice(open_page: OpenPage) -> None:
    page = open_page("search?q=zqxv+plover&collection=rivers")
    hits(page)
    expect(page.get_by_text("Nothing here seems to answer the question.")).to_be_visible()
    page = open_page("search?q=a+heron+pump+lifts+water&collection=rivers")
    hits(page)
    expect(page.get_by_text("Nothing here seems to answer the question.")).to_have_count(0)


def test_a_hit_opens_its_document_at_the_passage(open_page: OpenPage, console: Installation) -> None:
    parts = [f"## Lock {n}\n\n" + f"The lock number {n} lifts a barge slowly. " * 40 for n in range(1, 9)]
    load(console, [{"id": "locks.md", "content": "# Locks\n\n" + "\n\n".join(parts)}], "locks")
    page = open_page("search?q=lock+number+7&collection=locks&k=1&mode=keyword")
    page.locator("article h2 a, article h3 a").first.click()
    wanted = page.locator("section.wanted")
    expect(wanted).to_contain_text("lock number 7")
    expect(wanted).to_be_in_viewport()


def test_a_document_is_one_card_with_its_passages_and_copies(open_page: OpenPage, console: Installation) -> None:
    parts = [f"## Weir {n}\n\n" + f"The weir number {n} holds the river back. " * 40 for n in range(1, 5)]
    content = "# Weirs\n\n" + "\n\n".join(parts)
    load(console, [{"id": f"weirs{n}.md", "content": content} for n in range(3)], "weirs")
    page = open_page("search?q=weir+holds+the+river+back&collection=weirs", viewport=SMALL)
    assert hits(page) == ["Weirs"]
    card = page.locator("article")
    further = card.get_by_role("list", name="More of this document").get_by_role("listitem")
    expect(further).to_have_count(2)
    assert "weir" in further.first.locator("mark").all_inner_texts()
    card.get_by_role("button", name="2 copies").click()
    expect(card.get_by_role("link", name="weirs/weirs")).to_have_count(2)
    assert overflow(page) <= 0
    wanted = further.first.get_by_role("link")
    place = wanted.inner_text()
    wanted.focus()
    page.keyboard.press("Enter")
    expect(page.locator("section.wanted")).to_contain_text(f"weir number {place.removeprefix('Weir ')}")
    by_passage = open_page("search?q=weir+holds+the+river+back&collection=weirs&group=passage")
    assert hits(by_passage) == ["Weirs"] * 10
    expect(by_passage.get_by_role("list", name="More of this document")).to_have_count(0)


@pytest.mark.parametrize("way", ["g", "link"])
def test_back_shows_the_same_hits_with_the_same_one_chosen(open_page: OpenPage, way: str) -> None:
    page = open_page("search?q=river&collection=rivers", viewport=SMALL)
    found = hits(page)
    searches = []
    page.on("request", lambda request: searches.append(request.url) if request.url.endswith("/v1/search") else None)
    for _ in range(3):
        page.keyboard.press("j")
    chosen = page.locator("article").nth(2)
    expect(chosen).to_be_focused()
    page.keyboard.press("Enter")
    expect(chosen.get_by_text("thalweg.documents.v1")).to_be_visible()
    if way == "g":
        page.keyboard.press("g")
        expect(page.get_by_role("heading", name="Graph")).to_be_attached()
    else:
        chosen.locator("h2 a").click()
        expect(page.get_by_role("heading", name="Search")).to_have_count(0)
    page.go_back()
    expect(chosen).to_be_in_viewport()
    expect(chosen).to_contain_class("current")
    expect(chosen.get_by_text("thalweg.documents.v1")).to_be_visible()
    assert hits(page) == found
    assert searches == []


def test_back_shows_the_hits_of_the_search_before(open_page: OpenPage) -> None:
    page = open_page("search?q=river&collection=rivers")
    first = hits(page)
    searches = []
    page.on("request", lambda request: searches.append(request.url) if request.url.endswith("/v1/search") else None)
    question = page.get_by_role("searchbox", name="Question")
    question.fill("heron pump")
    with page.expect_response("**/v1/search"):
        question.press("Enter")
    expect(page.locator(".summary")).to_contain_text("hits in")
    assert hits(page)[0] == "Issen"
    page.go_back()
    expect(question).to_have_value("river")
    assert hits(page) == first
    assert len(searches) == 1
    page.goto(page.url.partition("#")[0] + "#/documents")
    expect(page.get_by_role("heading", name="Search")).to_have_count(0)
    page.goto(page.url.partition("#")[0] + "#/search?q=river&collection=rivers")
    expect(question).to_have_value("river")
    hits(page)
    assert len(searches) == 2


def test_filters_and_options_stand_in_the_address(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("status of 404")  # of a service that does not list fields
    page = open_page(QUESTION)
    hits(page)
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Field", exact=True).focus()
    page.get_by_label("Field", exact=True).select_option("country")
    expect(page.locator("datalist[id$='-values'] option")).to_have_count(2)
    page.get_by_label("Value").fill("South")
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_url(re.compile(r"filter=country%3DSouth"))
    expect(page.locator("article h2")).to_have_count(2)
    assert set(hits(page)) == {"Orrow", "Quill"}
    ways = page.get_by_label("Find by")
    expect(ways).to_have_accessible_description(re.compile("By meaning, words, fields and graph"))
    ways.select_option("keyword")
    expect(ways).to_have_accessible_description(re.compile("rare words count more"))
    page.wait_for_url(re.compile("mode=keyword"))
    shared = open_page(page.url.partition("#/")[2])
    expect(shared.locator("article h2").first).to_have_text("Orrow")
    assert set(hits(shared)) <= {"Orrow", "Quill"}
    page.go_back()
    expect(ways).to_have_value("hybrid")


def test_operators_are_named_after_the_kind_of_field(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    hits(page)
    page.get_by_role("button", name="Options").click()
    field, operator = page.get_by_label("Field", exact=True), page.get_by_label("Operator")
    field.focus()
    expect(field.get_by_role("option", name=re.compile(r"updated \(\d+\)"))).to_be_attached()
    field.select_option("updated")
    expect(operator.locator("option[value='<']")).to_have_text("is before")
    field.select_option("country")
    expect(operator.locator("option[value='<']")).to_have_text("is below")


def test_hit_shows_how_it_was_found(open_page: OpenPage) -> None:
    page = open_page(QUESTION)
    hits(page)
    hit = page.locator("article").first
    note = hit.get_by_role("note", name="How this was found")
    expect(note).to_be_hidden()
    hit.get_by_role("button", name="How this was found").focus()
    page.keyboard.press("Enter")
    expect(note).to_contain_text(re.compile(r"\d+(st|nd|rd|th) of what was found by meaning"))
    expect(note).to_contain_text("likely to be relevant")
    expect(note.locator("code")).to_have_text(re.compile(r"^\d\.\d{4} = text score \(cosine 0\.\d{3}"))
    products = [float(each) for each in note.locator("tbody tr td:last-child").all_inner_texts()]
    assert sum(products[:-1]) == pytest.approx(products[-1], abs=0.02)
    page.keyboard.press("Escape")
    expect(note).to_be_hidden()


def test_edges_steps_and_names_are_asked_for(open_page: OpenPage) -> None:
    page = open_page(f"{QUESTION}&mode=graph&graph_method=expansion")
    hits(page)
    page.get_by_role("button", name="Options").click()
    page.get_by_label(re.compile("^Steps")).select_option("1")
    for what, value in (("edge", "statement"), ("name", "Orrow")):
        page.get_by_label(f"One more {what}").fill(value)
        with page.expect_request("**/v1/search") as asked:
            page.get_by_role("form", name=f"Add: {what}").get_by_role("button", name="Add").click()
    sent = asked.value.post_data_json
    assert (sent["edges"], sent["names"], sent["hops"]) == (["statement"], ["Orrow"], 1)
    for hit in page.locator("article").all():
        assert "mentions" not in hit.locator(".path .edge").all_inner_texts()
    page.get_by_role("button", name="Remove the edge statement").click()
    expect(page).to_have_url(re.compile("names=Orrow"))
    assert "edges=" not in page.url


def test_neighbours_are_offered_where_there_are_some(open_page: OpenPage) -> None:
    page = open_page(QUESTION)  # each river is one passage
    hits(page)
    hit = page.locator("article").first
    with page.expect_response("**/v1/documents/**"):
        hit.get_by_role("button", name="More").click()
    expect(hit.locator("p.passage")).to_be_visible()
    expect(hit.get_by_role("button", name=re.compile("(Before|After) it"))).to_have_count(0)


def test_a_stream_that_drops_goes_on_where_it_ended(open_page: OpenPage) -> None:
    page = open_page("search")
    last_ids: list[str | None] = []

    def drop_once(route: Route) -> None:
        last_ids.append(route.request.headers.get("last-event-id"))
        if len(last_ids) > 1:
            route.continue_()
            return
        answer = route.fetch()
        frames = answer.text().split("\n\n")
        upto = next(place for place, frame in enumerate(frames) if frame.startswith("event: hit")) + 1
        route.fulfill(response=answer, body="\n\n".join([*frames[:upto], ""]))

    page.route("**/v1/search", drop_once)
    page.get_by_role("searchbox", name="Question").fill("river")
    page.keyboard.press("Enter")
    expect(page.get_by_text("was taken up again; nothing is missing")).to_be_visible()
    expect(page.locator(".summary")).to_contain_text(f"{len(hits(page))} hits in ")
    assert len(hits(page)) == len(set(page.locator("article .rank").all_inner_texts())) > 1
    first, second = last_ids
    assert first is None
    assert second is not None
    assert re.fullmatch(r"r_[0-9a-f]+\.\d+", second)


def test_refusal_of_the_service_is_shown_in_its_words(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("status of 422")
    page = open_page(f"{QUESTION}&filter=colour%3Dred")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("colour")
    expect(alert).to_contain_text("country")


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "light"), (WIDE, "dark")], ids=["narrow", "wide"])
def test_search_view_is_accessible_and_fits_the_page(open_page: OpenPage, size: dict[str, int], theme: str) -> None:
    page = open_page(QUESTION, viewport=size, color_scheme=theme, bypass_csp=True)
    hits(page)
    page.get_by_role("button", name="Options").click()
    page.get_by_text("Advanced").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("article").first.get_by_role("button", name="How this was found").click()
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert serious_faults(page) == []
    assert overflow(page) <= 0
