"""Operation, usage, evaluation and entities in the browser."""

import re

import httpx
import pytest
from kafka import KafkaProducer
from playwright.sync_api import Route, expect

from tests.acceptance.console.conftest import SMALL, WIDE, Complaints, OpenPage, agree, load, overflow, serious_faults
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

VIEWS = (
    "operation",
    "usage",
    "evaluation",
    *(f"entities?collection=rivers&tab={tab}" for tab in ("names", "reviews", "communities", "made")),
)
TWINS = [
    {"id": f"{number}.md", "content": f"The {name} lies in the harbour of Marrow. The {name} is old."}
    for number, name in enumerate(("Pilot Cutter", "Pilot Cutters", "Harbour Light", "Harbour Lights"))
]


def test_lag_rises_and_falls_while_500_documents_come(open_page: OpenPage, console: Installation) -> None:
    page = open_page("operation")
    lag = page.locator(".figures div").filter(has=page.get_by_text("Lag", exact=True)).locator("dd").first
    expect(lag).to_have_text("0 records")
    worker = console.child("worker")
    worker.suspend()
    try:
        documents = [{"id": f"boat-{n}.md", "collection": "fleet", "content": f"Boat number {n}."} for n in range(500)]
        answer = httpx.post(f"{console.url}/v1/documents", json={"documents": documents}, timeout=30)
        assert answer.status_code == 202
        expect(lag).to_have_text("500 records")
        expect(page.locator("figure").filter(has_text="Lag, records")).to_contain_text("peak 500")
    finally:
        worker.resume()
    expect(lag).to_have_text("0 records", timeout=60_000)
    expect(page.get_by_role("button", name="fleet")).to_be_visible()


def test_a_dead_letter_shows_why_and_its_bytes(open_page: OpenPage, console: Installation) -> None:
    producer = KafkaProducer(bootstrap_servers=console.kafka, acks="all")
    producer.send("thalweg.documents.v1", b'{"id": "torn.md", "content', key=b"rivers/torn.md").get(timeout=30)
    producer.close()
    page = open_page("operation")
    letter = page.get_by_role("listitem").filter(has_text="rivers/torn.md")
    expect(letter).to_contain_text("Not JSON", timeout=30_000)
    letter.get_by_role("button", name="rivers/torn.md").click()
    expect(letter.locator("pre")).to_have_text('{"id": "torn.md", "content')
    with page.expect_download() as saved:
        letter.get_by_role("button", name="Save the bytes").click()
    assert saved.value.path().read_bytes() == b'{"id": "torn.md", "content'
    letter.get_by_role("button", name="Send it again").click()
    expect(page.get_by_text(re.compile("1 dead letter: 1 sent again"))).to_be_visible()


def test_chunking_of_a_collection_is_chosen(open_page: OpenPage, complaints: Complaints, console: Installation) -> None:
    complaints.expected += ["status of 422"]
    page = open_page("operation")
    page.get_by_role("button", name="rivers", exact=True).click()
    chunking = page.get_by_role("form", name="Chunking")
    save = chunking.get_by_role("button", name="Save")
    size, passage = chunking.get_by_label("Chunk size"), chunking.get_by_label("Passage size")
    expect(size).to_have_attribute("placeholder", "300")
    expect(chunking).to_contain_text("Range: 50 to 10,000. Default: 300.")
    expect(chunking).to_contain_text("keep their chunks until a rebuild")
    size.fill("7")
    save.click()
    expect(size).to_be_focused()
    expect(chunking.get_by_role("alert")).to_have_text("Give a number from the range: 50 to 10,000.")
    size.fill("200")
    passage.fill("300")
    save.click()
    expect(passage).to_be_focused()  # what the service itself refuses stands beside the field that it names
    expect(chunking.get_by_role("alert")).to_contain_text("parent_characters is twice child_characters or more")
    passage.fill("")
    save.click()
    expect(chunking.get_by_role("status")).to_have_text("Saved.")
    address = f"{console.url}/v1/collections/rivers/chunking"
    assert httpx.get(address, timeout=10).json()["child_characters"] == 200
    for undone in (True, False):
        chunking.get_by_role("button", name="Back to the default").click()
        expect(page.get_by_role("alertdialog")).to_contain_text("1 chosen setting will be the default again")
        agree(page, "Back to the default")
        expect(page.get_by_text("The default applies again")).to_be_visible()
        assert httpx.get(address, timeout=10).json()["chosen"]["child_characters"] is None
        if undone:
            chunking.get_by_role("button", name="Undo").click()
            expect(size).to_have_value("200")
            assert httpx.get(address, timeout=10).json()["child_characters"] == 200


def test_a_retrieval_shows_what_was_returned_then_and_now(open_page: OpenPage, console: Installation) -> None:
    boats = [
        {"id": f"{name}.md", "title": f"Barge {name}", "content": f"The barge {name} lies at Osmere."}
        for name in ("Ada", "Bea")
    ]
    load(console, boats, "barges")
    then = console.search(q="barge at Osmere", collection="barges", cache=False)
    assert len(then["hits"]) == 2
    deleted = httpx.delete(f"{console.url}/v1/documents/Ada.md", params={"collection": "barges"}, timeout=10).json()
    console.search(q="x", after=deleted["token"], wait_seconds=60)
    page = open_page(f"usage?retrieval={then['retrieval_id']}")
    expect(page.get_by_role("status").filter(has_text="1 gone")).to_be_visible()
    sides = {
        name: page.locator("div").filter(has=page.get_by_role("heading", name=name)).last for name in ("Then", "Now")
    }
    expect(sides["Then"].get_by_role("listitem").filter(has_text="Ada.md")).to_contain_text(
        "gone"
    )  # it has no title now
    for side in sides.values():
        kept = side.get_by_role("listitem").filter(has=page.get_by_role("link", name="Barge Bea"))
        expect(kept).to_contain_text("score")


def test_an_evaluation_is_asked_for_and_shown(open_page: OpenPage) -> None:
    page = open_page("evaluation")
    page.get_by_label("Collection").select_option("rivers")
    questions = page.get_by_role("textbox", name="Questions")
    questions.fill("which river rises in the hills of Osmere")
    page.get_by_role("button", name="Evaluate").click()
    expect(page.get_by_role("alert")).to_contain_text("Line 1 names no document")
    questions.fill("which river rises in the hills of Osmere\trivers/tavel.md\nwhat lifts water\trivers/issen.md\n")
    page.get_by_role("button", name="Evaluate").click()
    expect(page.get_by_role("columnheader", name="nDCG@10")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("row", name=re.compile("keyword"))).to_be_visible()
    expect(page.get_by_text("How near the order of the first 10 hits")).to_be_visible()
    plot = page.get_by_role("img", name=re.compile(r"Calibration of keyword\. first hits: .* relevant\. all hits: "))
    expect(plot).to_be_visible()
    expect(page.get_by_text(re.compile(r"first hits \(2\): off by \d")).first).to_be_visible()


def test_documents_that_are_not_there_are_corrected_or_left_out(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected += ["status of 422"]
    page = open_page("evaluation")
    page.get_by_label("Collection").select_option("rivers")
    questions = page.get_by_role("textbox", name="Questions")
    questions.fill("what rises in the hills\trivers/tavell.md\nwhat lifts water\trivers/issen.md\nwhat sails\tqqqq")
    page.get_by_role("button", name="Evaluate", exact=True).click()
    wrong = page.get_by_role("alert")
    expect(wrong).to_contain_text("2 documents not in the collection")
    wrong.get_by_role("button", name="rivers/tavel.md").click()
    expect(questions).to_have_value(re.compile("hills\trivers/tavel.md\n"))
    expect(wrong.get_by_role("listitem")).to_have_count(1)
    wrong.get_by_role("button", name="Evaluate without it").click()
    expect(page.get_by_text("Measured without 1 document that is not in the collection (qqqq)")).to_contain_text(
        "without 1 question that has no other (q3)", timeout=60_000
    )


def await_entities(console: Installation) -> None:
    """Until communities and reviews are computed: before, their routes answer 503."""

    def are_known() -> bool:
        asked = (f"{console.url}/v1/{name}" for name in ("communities", "reviews"))
        return all(httpx.get(each, params={"collection": "rivers"}, timeout=10).status_code == 200 for each in asked)

    wait_until(are_known, "communities and reviews are known", 60)


def test_entities_are_listed_by_name_and_a_node_is_made(open_page: OpenPage, console: Installation) -> None:
    await_entities(console)
    page = open_page("entities?collection=rivers")
    expect(page.get_by_role("link", name="Lyde", exact=True)).to_be_visible()
    page.get_by_placeholder("A name").fill("iss")
    expect(page.get_by_role("link", name="Lyde", exact=True)).to_have_count(0)
    expect(page.get_by_role("link", name="Issen", exact=True)).to_be_visible()
    tab = page.get_by_role("link", name="Made by people")
    expect(tab).to_have_text(re.compile(r"\d"))
    before = tab.inner_text()
    tab.click()
    page.get_by_label("Name", exact=True).fill("Ferry of Marrow")
    page.get_by_role("button", name="Add the node").click()
    made = page.get_by_role("listitem").filter(has_text="Ferry of Marrow")
    expect(made).to_be_visible()
    expect(tab).not_to_have_text(before)
    with_it = tab.inner_text()
    made.get_by_role("button", name="Delete").click()
    agree(page, "Delete the node")
    expect(made).to_have_count(0)
    expect(tab).to_have_text(before)
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(made).to_be_visible()
    expect(tab).to_have_text(with_it)
    made.get_by_role("button", name="Delete").click()
    agree(page, "Delete the node")
    expect(tab).to_have_text(before)


def test_reviews_are_decided_by_keys_and_taken_back(open_page: OpenPage, console: Installation) -> None:
    load(console, TWINS, "twins")
    await_entities(console)
    waiting = f"{console.url}/v1/reviews?collection=twins"
    wait_until(lambda: httpx.get(waiting, timeout=10).json().get("total") == 2, "two pairs wait for a decision", 90)
    page = open_page("entities?collection=twins&tab=reviews")
    rows = page.get_by_role("list", name="Reviews").get_by_role("listitem")
    expect(rows).to_have_count(2)
    expect(page.get_by_role("link", name="Reviews 2")).to_be_visible()
    first, second = (row.get_attribute("aria-label") for row in rows.all())
    page.keyboard.press("s")  # not in the list: nothing is decided
    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("s")
    expect(page.get_by_role("status").filter(has_text="One and the same now")).to_contain_text(str(first))
    expect(page.get_by_role("listitem", name=str(second))).to_be_focused()
    expect(page.get_by_role("link", name="Reviews 1")).to_be_visible()
    page.keyboard.press("u")
    expect(rows).to_have_count(2)
    page.get_by_role("listitem", name=str(second)).get_by_role("button", name="Different").click()
    expect(rows).to_have_count(1)
    page.get_by_label("Show").select_option("decided ones")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("rejected")


def test_list_that_is_not_computed_yet_is_asked_for_again(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected += ["status of 503"]
    page = open_page()
    early = {"title": "No communities yet", "detail": "The worker finds them in a moment."}
    late = {"communities": [{"id": "c", "title": "Mills", "size": 3, "summary": []}], "next_cursor": None, "total": 1}
    page.route("**/v1/communities?*", lambda route: route.fulfill(status=503, json=early, headers={"Retry-After": "1"}))
    page.goto(page.url.replace("search", "entities?tab=communities"))
    expect(page.get_by_role("alert")).to_contain_text("The worker finds them in a moment.")
    page.unroute("**/v1/communities?*")
    page.route("**/v1/communities?*", lambda route: route.fulfill(json=late))
    expect(page.get_by_text("Mills")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_list_whose_first_page_failed_asks_for_that_page(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected += ["status of 503"]
    refused: list[str] = []

    def answer(route: Route) -> None:
        address = route.request.url
        name = "Marrow" if "prefix=Mar" in address else "Tavel"
        if "cursor=" in address:
            name = "Lyde"
        elif name == "Marrow" and not refused:
            refused.append(address)
            route.fulfill(status=503, json={"title": "Away", "detail": "In a moment."}, headers={"Retry-After": "1"})
            return
        entity = {"id": name, "collection": "rivers", "label": name, "type": "place", "mentions": 1, "names": 1}
        route.fulfill(json={"entities": [entity], "next_cursor": "further", "total": 2})

    page = open_page()
    page.route("**/v1/entities?*", answer)
    page.goto(page.url.replace("search", "entities"))
    expect(page.get_by_role("row").filter(has_text="Tavel")).to_be_visible()
    page.get_by_placeholder("A name").fill("Mar")
    expect(page.get_by_role("row").filter(has_text="Marrow")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text=re.compile("Tavel|Lyde"))).to_have_count(0)
    assert len(refused) == 1


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["small", "wide"])
def test_operation_views_are_accessible_and_fit_the_page(
    open_page: OpenPage, console: Installation, theme: str, size: dict[str, int]
) -> None:
    await_entities(console)
    retrieval = console.search(q="river", collection="rivers", cache=False)["retrieval_id"]
    for view in (*VIEWS, f"usage?retrieval={retrieval}"):
        page = open_page(view, color_scheme=theme, viewport=size, bypass_csp=True)
        expect(
            page.get_by_text(re.compile("Partitions|Retrievals|Ask labelled questions|Made by people")).first
        ).to_be_visible()
        expect(page.get_by_text("Loading …")).to_have_count(0)
        if view == "operation":
            page.get_by_role("button", name="rivers", exact=True).click()
            expect(page.get_by_role("form", name="Linking")).to_be_visible()
            page.get_by_text("What these figures mean").click()
        assert serious_faults(page) == []
        assert overflow(page) <= 0
