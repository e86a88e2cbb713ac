"""Why a document is missing, in the browser: among the documents, where its address is opened, and in the banner."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.acceptance.console.conftest import SMALL, WIDE, Complaints, OpenPage, load, overflow, serious_faults
from tests.acceptance.console.test_documents_view import drop
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

BROKEN = "%PDF-1.4 and no more"
REASON = "Damaged"


def refuse(console: Installation, collection: str, name: str) -> None:
    """Returns once the service knows of the dead letter."""
    address = f"{console.url}/v1/documents/{name}"
    kind = {"Content-Type": "application/pdf"}
    sent = httpx.put(address, params={"collection": collection}, content=BROKEN, headers=kind, timeout=30)
    assert sent.status_code == 202, sent.text
    asked = {"collection": collection, "document": name, "state": "open"}

    def is_known() -> bool:
        return bool(httpx.get(f"{console.url}/v1/dead-letters", params=asked, timeout=30).json()["open"])

    wait_until(is_known, f"{name} is a dead letter")


def test_refused_file_is_shown_after_reloads_until_repaired(
    open_page: OpenPage, console: Installation, complaints: Complaints
) -> None:
    complaints.expected.append("status of 404")
    page = open_page("documents?collection=plans")
    drop(page, ("plan.pdf", BROKEN))
    added = page.get_by_role("list", name="Added").get_by_role("listitem")
    expect(added).to_contain_text("damaged beyond repair")
    expect(added).to_contain_text("save it again")
    page.reload()
    notice = page.get_by_text("1 record of this collection was refused and is not indexed.")
    expect(notice).to_be_visible()
    page.get_by_role("link", name="See why").click()
    letters = page.get_by_role("list", name="Refused").get_by_role("listitem")
    expect(letters).to_have_count(1)
    expect(letters).to_contain_text(REASON)

    drop(page, ("plan.pdf", BROKEN))
    expect(page.get_by_role("list", name="Added")).to_contain_text("damaged beyond repair")
    expect(page.get_by_text("1 record could not be indexed")).to_be_visible()
    expect(letters).to_have_count(1)
    letters.get_by_role("link", name="plan.pdf", exact=True).click()
    expect(page.get_by_text("its newest record was refused")).to_be_visible()
    expect(letters).to_have_count(2)
    letters.first.get_by_role("link", name="What was sent").click()
    opened = page.get_by_role("listitem").filter(has=page.locator("pre"))
    expect(opened).to_contain_text("plans/plan.pdf")
    expect(opened.locator("pre")).to_contain_text(BROKEN)

    load(console, [{"id": "plan.pdf", "content": "The plan of the weir."}], "plans")
    page.goto(f"{console.url}/#/documents?collection=plans")
    expect(page.get_by_role("cell", name="plan.pdf").first).to_be_visible()
    expect(page.get_by_text("refused and")).to_have_count(0)
    page.get_by_role("link", name="Refused", exact=True).click()
    expect(page.get_by_text("Nothing is missing")).to_be_visible()


def test_file_of_an_unknown_type_is_shown_refused_after_reload(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("status of 415")
    page = open_page("documents?collection=films")
    drop(page, ("film.mp4", "film"))
    added = page.get_by_role("list", name="Added").get_by_role("listitem")
    expect(added).to_contain_text("is not a media type of a format that Thalweg reads")
    page.reload()
    expect(added).to_contain_text("film.mp4")
    expect(added).to_contain_text("Convert it to one that is read")
    page.get_by_role("button", name="Clear the list").click()
    page.reload()
    expect(page.get_by_role("heading", name="Documents", exact=True).last).to_be_visible()
    expect(added).to_have_count(0)


def test_document_whose_newer_version_was_refused_shows_that(open_page: OpenPage, console: Installation) -> None:
    load(console, [{"id": "kept.md", "content": "# Kept\n\nAn older text."}], "kept")
    refuse(console, "kept", "kept.md")
    page = open_page("documents?collection=kept")
    row = page.get_by_role("row").filter(has_text="kept.md")
    expect(row).to_contain_text(f"A newer version was refused: {REASON}")
    page.get_by_role("link", name="Kept", exact=True).click()
    expect(page.get_by_text("this is the one before it")).to_be_visible()
    expect(page.get_by_text("An older text.").first).to_be_visible()
    page.get_by_role("link", name="What was sent").click()
    expect(page.get_by_role("listitem").filter(has=page.locator("pre"))).to_contain_text("kept/kept.md")


def test_address_of_a_missing_document_shows_why(
    open_page: OpenPage, console: Installation, complaints: Complaints
) -> None:
    complaints.expected.append("status of 404")
    load(console, [{"id": "gone.md", "content": "It goes."}], "missing")
    deleted = httpx.delete(f"{console.url}/v1/documents/gone.md", params={"collection": "missing"}, timeout=10).json()
    console.search(q="x", collection="missing", after=deleted["token"], wait_seconds=60)
    page = open_page("documents?id=gone.md&in=missing")
    expect(page.get_by_text("It was deleted.")).to_be_visible()
    page = open_page("documents?id=never.md&in=missing")
    expect(page.get_by_text("There is no document with this id in the collection.")).to_be_visible()


def test_the_banner_leads_to_the_open_dead_letters(open_page: OpenPage, console: Installation) -> None:
    refuse(console, "led", "led.pdf")
    page = open_page("search")
    banner = page.get_by_role("status", name="Service")
    expect(banner).to_contain_text(re.compile(r"refused within a day and (is|are) not indexed"))
    expect(banner).not_to_contain_text("thalweg dead-letters")
    banner.get_by_role("link", name="See why").click()
    letter = page.get_by_role("button", name="led/led.pdf")
    expect(letter).to_be_in_viewport()
    filters = page.get_by_role("region", name="Dead letters")
    expect(filters.get_by_label("Show")).to_have_value("open")
    filters.get_by_label("Reason").select_option("malformed")
    expect(letter).to_be_visible()
    expect(page).to_have_url(re.compile("reason=malformed"))


@pytest.mark.parametrize(("size", "theme"), [(SMALL, "dark"), (WIDE, "light")], ids=["narrow", "wide"])
def test_refused_documents_are_accessible_and_fit_the_page(
    open_page: OpenPage, console: Installation, complaints: Complaints, size: dict[str, int], theme: str
) -> None:
    complaints.expected.append("status of 404")
    refuse(console, "open", "a-name-that-is-long/" * 8 + "plan.pdf")
    name = ("a-name-that-is-long/" * 8 + "plan.pdf").replace("/", "%2F")
    views = ("documents?collection=open&refused=true", f"documents?id={name}&in=open", "operation?collection=open")
    for view in views:
        page = open_page(view, viewport=size, color_scheme=theme, bypass_csp=True)
        expect(page.get_by_text(REASON, exact=True).last).to_be_visible()
        assert serious_faults(page) == []
        assert overflow(page) <= 0
