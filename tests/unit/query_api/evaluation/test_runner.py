"""An evaluation from folder to findings and reports, against a service in memory; the figures worked by hand."""

import json
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from markdown_it import MarkdownIt

from query_api.evaluation.aggregation import comparisons
from query_api.evaluation.approaches import APPROACHES, approaches_named
from query_api.evaluation.datasets import read_folder
from query_api.evaluation.html_report import write_reports
from query_api.evaluation.report import as_json_text, calibration_facts, calibration_table, facts, p_text
from query_api.evaluation.results import CollectionResult, Evaluation
from query_api.evaluation.runner import Plan, evaluate
from query_api.retrieval.confidence import fitted_calibration
from schemas.choices import Mode
from schemas.errors import Failure, WrongSetting
from schemas.search import SearchRequest
from tests.unit.query_api.evaluation.folders import write_folder
from tests.unit.query_api.evaluation.pretend_service import PretendService

LOUD = "a|b <script> *bold*"


@pytest.fixture
def service() -> PretendService:
    return PretendService()


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """q1 "Who stands?" has d1 (found first), q2 "Who swims?" has d2 (found), the third finds nothing."""
    queries = [{"_id": "q1", "text": "Who stands?"}, {"_id": "q2", "text": "swims."}, {"_id": "q3", "text": LOUD}]
    judged = [("q1", "d1", "1"), ("q2", "d2", "2"), ("q3", "d3", "1")]
    folder = write_folder(tmp_path / "birds", queries=queries, judged=judged)
    return Plan(collections=(read_folder(folder),), approaches=approaches_named(["hybrid", "keyword"]), k=5)


def only(found: Evaluation) -> CollectionResult:
    (collection,) = found.collections
    return collection


def test_no_search_of_an_evaluation_counts_as_usage(service: PretendService, plan: Plan) -> None:
    evaluate(plan, service.client)
    assert service.usage == {"none"}


def test_every_question_is_asked_in_every_approach_in_turns_after_one_to_warm_up(
    service: PretendService, plan: Plan
) -> None:
    found = only(evaluate(plan, service.client))
    assert [asked["mode"] for asked in service.asked] == [
        "hybrid",  # before anything is loaded
        *("hybrid", "keyword"),
        *("hybrid", "keyword"),
        *("keyword", "hybrid"),
        *("hybrid", "keyword"),
    ]
    assert {asked["collection"] for asked in service.asked} == {found.loaded.collection}
    assert {(asked["k"], asked["group"]) for asked in service.asked} == {("5", "document")}
    assert [approach.latencies["answer"].answers for approach in found.approaches] == [3, 3]


def test_figures_are_those_of_the_answers(service: PretendService, plan: Plan) -> None:
    found = only(evaluate(plan, service.client))
    hybrid = found.approaches[0]
    assert [question.measures["R@5"] for question in hybrid.questions] == [1, 0, 0], "'swims.' is no word of d2"
    assert hybrid.measures["R@5"].mean == pytest.approx(1 / 3, abs=1e-6)
    assert hybrid.latencies["total"].p50 == 0.004
    assert hybrid.latencies["first hit"].answers == 1, "two questions had no hit"
    assert list(hybrid.latencies) == ["keyword", "texts", "total", "first hit", "answer"]
    assert hybrid.calibration is None
    assert {(each.ours, each.theirs, each.adjusted_p) for each in found.comparisons} == {("hybrid", "keyword", 1.0)}
    assert {each.measure for each in found.comparisons} == {"R@5", "AllGold@5"}, "k is 5: there is no nDCG@10"


def test_questions_in_lower_case_and_fewer_of_them(service: PretendService, plan: Plan) -> None:
    found = only(evaluate(msgspec.structs.replace(plan, lower_case=True, questions=1), service.client))
    assert {asked["q"] for asked in service.asked} == {"who stands?"}
    assert (found.asked, found.questions) == (1, 3)


def test_confidence_is_calibrated_where_hits_carry_it(service: PretendService, plan: Plan) -> None:
    service.confidence = 0.75
    calibration = only(evaluate(plan, service.client)).approaches[0].calibration
    assert calibration is not None
    assert (calibration.hits, calibration.expected_error) == (1, 0.25), "one hit, and it is right"


def test_first_hits_are_calibrated_apart_from_all_hits(service: PretendService, plan: Plan, tmp_path: Path) -> None:
    """The first of two lynxes is right, the second one is not."""
    service.confidence = 0.75
    corpus = [{"_id": f"m{number}", "title": "m", "text": "A lynx sleeps."} for number in (1, 2)]
    folder = write_folder(tmp_path / "lynxes", corpus, [{"_id": "q1", "text": "lynx"}], [("q1", "m1", "1")])
    found = evaluate(msgspec.structs.replace(plan, collections=(read_folder(folder),)), service.client)
    of = only(found).approaches[0]
    assert of.calibration is not None
    assert of.first_hit_calibration is not None
    assert (of.first_hit_calibration.hits, of.first_hit_calibration.expected_error) == (1, 0.25)
    assert (of.calibration.hits, of.calibration.expected_error) == (2, 0.25)
    assert [row[1:] for row in calibration_table(only(found)).rows[:2]] == [
        ["1", "0.250", "75.0", "100.0"],
        ["2", "0.250", "75.0", "50.0"],
    ]
    assert calibration_facts(only(found))[0] == (
        "hybrid: expected calibration error 0.250 over 1 first hits, 0.250 over all 2 hits."
    )


@pytest.mark.parametrize("suffix", ["", "-200-1"])
def test_calibration_is_not_shown_on_what_confidence_learnt(
    service: PretendService, plan: Plan, tmp_path: Path, suffix: str
) -> None:
    service.confidence = 0.75
    learnt = next(iter(fitted_calibration().collections))
    folder = read_folder(write_folder(tmp_path / f"{learnt}{suffix}"))
    found = evaluate(msgspec.structs.replace(plan, collections=(folder,)), service.client)
    assert only(found).confidence_fitted_to == learnt
    write_reports(found, tmp_path)
    for text in ((tmp_path / "report.md").read_text(), (tmp_path / "report.html").read_text()):
        assert f"confidence was fitted to questions of {learnt}" in text
        assert "expected calibration error" not in text
        assert "Reliability" not in text


def test_a_pool_is_one_collection_for_all_folders(service: PretendService, plan: Plan, tmp_path: Path) -> None:
    other = read_folder(write_folder(tmp_path / "more"))
    found = evaluate(
        msgspec.structs.replace(plan, collections=(*plan.collections, other), pool="all"), service.client
    ).collections
    assert len(service.published) == 6
    assert found[0].loaded == found[1].loaded
    assert found[0].approaches[0].questions[0].documents == ("birds/d1", "more/d1")
    assert found[0].approaches[0].measures["MRR@5"].mean == pytest.approx(1 / 3, abs=1e-6)
    assert found[1].approaches[0].questions[0].measures["MRR@5"] == 0.5


@pytest.mark.parametrize(("broken", "message"), [("error", "The disk is gone"), ("cut", "ended in the middle")])
def test_a_search_that_fails_is_no_search_that_found_nothing(
    service: PretendService, plan: Plan, broken: str, message: str
) -> None:
    service.broken = broken
    with pytest.raises(Failure, match=message):
        evaluate(plan, service.client)


def test_the_first_is_compared_with_each_other_and_adjusted_for_their_number() -> None:
    """Three approaches, 3 questions: a beats b and c by 1 each time (p 2/8 each)."""
    values = {name: {"R@5": of} for name, of in (("a", [1.0] * 3), ("b", [0.0] * 3), ("c", [0.0] * 3))}
    found = {(each.ours, each.theirs): (each.difference.mean, each.adjusted_p) for each in comparisons(values)}
    assert found == {("a", "b"): (1, 0.5), ("a", "c"): (1, 0.5)}
    assert comparisons({"a": {"R@5": [1.0]}}) == ()


def test_the_three_reports_say_the_same(service: PretendService, plan: Plan, tmp_path: Path) -> None:
    service.failed_channels = {"graph": "too late"}
    found = evaluate(plan, service.client)
    write_reports(found, tmp_path)
    assert msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Evaluation) == found
    assert json.loads(as_json_text(found))["collections"][0]["approaches"][0]["calibration"] is None
    markdown, page = ((tmp_path / name).read_text() for name in ("report.md", "report.html"))
    for text in (markdown, page):
        assert facts(found) in text
        assert "1 documents are a title without text." in text
        assert "hybrid: 3 answers came without the graph channel." in text
        assert "not measured, since no hit carries a confidence" in text
        assert "33.3 [0.0, 100.0]" in text.replace("\\", "")
    assert r"a\|b &lt;script&gt; \*bold\*" in markdown
    assert "a|b &lt;script&gt; *bold*" in page
    for outside in ("<script", "<link", "src=", "href=", "url(", "@import"):
        assert outside not in page


def test_nothing_that_a_corpus_names_is_markup_in_a_report(service: PretendService, plan: Plan, tmp_path: Path) -> None:
    found = evaluate(plan, service.client)
    collection = only(found)
    evil = ("<img src=x onerror=alert(1)>", "[here](javascript:alert(1))", "![x](http://elsewhere/)")
    loaded = msgspec.structs.replace(collection.loaded, missing=evil)
    named = msgspec.structs.replace(collection, name="<b>name</b>", loaded=loaded)
    write_reports(msgspec.structs.replace(found, collections=(named,)), tmp_path)
    shown = MarkdownIt("commonmark").enable("table").render((tmp_path / "report.md").read_text())
    for text in (shown, (tmp_path / "report.html").read_text()):
        assert not [part for part in ("<img", "<b>name", "<a href") if part in text]
    assert "&lt;img src=x onerror=alert(1)&gt;, [here](javascript:alert(1)), ![x](http://elsewhere/)" in shown


def test_the_page_draws_what_was_found(service: PretendService, plan: Plan, tmp_path: Path) -> None:
    service.confidence = 0.75
    write_reports(evaluate(plan, service.client), tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert '<td>hybrid</td><td style="--share:33.3%;--low:0.0%;--high:100.0%">33.3 [0.0, 100.0]</td>' in page
    bars = '<td style="--share:75.0%">75.0</td><td style="--share:100.0%">100.0</td>'
    for series in ("first hits", "all hits"):
        assert f"<td>hybrid, {series}</td><td>1</td>{bars}" in page, "reliability"
        assert f"<td>hybrid, {series}</td><td>1</td><td>0.250</td>{bars}" in page, "calibration"


def test_small_p_values_are_bounded_not_zero() -> None:
    assert (p_text(0.0001), p_text(0.0314)) == ("< 0.001", "0.031")


def test_an_approach_the_service_refuses_is_told_and_left_out(service: PretendService, plan: Plan) -> None:
    service.refused_modes = {"keyword"}
    found = only(evaluate(plan, service.client))
    assert [approach.name for approach in found.approaches] == ["hybrid"]
    assert found.not_offered == {"keyword": "Invalid request: No mode keyword."}
    service.refused_modes = {"hybrid", "keyword"}
    with pytest.raises(WrongSetting, match="offers none of these approaches"):
        evaluate(plan, service.client)


def test_only_the_approach_with_a_re_ranker_asks_for_it_and_is_left_out_where_there_is_none(
    service: PretendService, plan: Plan
) -> None:
    plan = msgspec.structs.replace(plan, approaches=approaches_named(["hybrid", "reranked"]))
    both = only(evaluate(plan, service.client))
    assert [approach.name for approach in both.approaches] == ["hybrid", "reranked"]
    assert [asked["reranker"] for asked in service.asked[1:3]] == ["false", "true"]
    service.has_reranker = False
    assert only(evaluate(plan, service.client)).not_offered == {"reranked": "No re-ranker: Configure one."}


def test_nothing_is_loaded_where_no_approach_is_offered(service: PretendService, plan: Plan) -> None:
    service.has_reranker = False
    plan = msgspec.structs.replace(plan, approaches=approaches_named(["reranked"]))
    with pytest.raises(WrongSetting, match=r"offers none of these approaches\. No re-ranker: Configure one\."):
        evaluate(plan, service.client)
    assert service.published == []


def test_an_approach_whose_step_was_left_out_has_no_figures(
    service: PretendService, plan: Plan, tmp_path: Path
) -> None:
    plan = msgspec.structs.replace(plan, approaches=approaches_named(["reranked", "hybrid", "keyword"]))
    service.failed_channels = {"rerank": "no answer within 2 s"}
    evaluation = evaluate(plan, service.client)
    found = only(evaluation)
    assert [approach.name for approach in found.approaches] == ["hybrid", "keyword"]
    assert {comparison.ours for comparison in found.comparisons} == {"hybrid"}
    asked = found.asked
    why = f"{asked} of {asked} answers came without its step 'rerank': no answer within 2 s."
    assert found.not_measured == {"reranked": why}
    write_reports(evaluation, tmp_path)
    assert f"reranked: not measured. {why}" in (tmp_path / "report.md").read_text()
    with pytest.raises(Failure, match=r"No approach was measured\. reranked: .* without its step 'rerank'"):
        evaluate(msgspec.structs.replace(plan, approaches=approaches_named(["reranked"])), service.client)


def test_a_collection_is_taken_as_it_is_if_it_holds_what_is_judged(service: PretendService, plan: Plan) -> None:
    loaded = only(evaluate(plan, service.client)).loaded
    sent = len(service.published)
    found = only(evaluate(msgspec.structs.replace(plan, within=loaded.collection), service.client))
    assert len(service.published) == sent
    assert (found.loaded.collection, found.loaded.sent) == (loaded.collection, 0)
    without_corpus = msgspec.structs.replace(plan.collections[0], documents=())
    alone = msgspec.structs.replace(plan, within=loaded.collection, collections=(without_corpus,))
    again = only(evaluate(alone, service.client))
    assert [each.measures for each in again.approaches] == [each.measures for each in found.approaches]
    assert again.documents == found.documents
    del service.searchable["d2"]
    with pytest.raises(WrongSetting, match="1 judged documents are not in the collection"):
        evaluate(msgspec.structs.replace(plan, within=loaded.collection), service.client)
    with pytest.raises(WrongSetting, match="is empty, or there is none"):
        evaluate(msgspec.structs.replace(plan, within="nowhere"), service.client)
    with pytest.raises(WrongSetting, match="give one of the two"):
        evaluate(msgspec.structs.replace(plan, within="a", pool="b"), service.client)


def test_the_other_sets_teach_what_a_confidence_is_worth(service: PretendService, plan: Plan, tmp_path: Path) -> None:
    """In "more" one of two hits of .75 is right, so the one hit of "birds", which is right, counts as one of .5."""
    service.confidence = 0.75
    corpus = [{"_id": name, "title": name, "text": "A lynx sleeps."} for name in ("m1", "m2")]
    queries = [{"_id": "q1", "text": "lynx"}]
    other = read_folder(write_folder(tmp_path / "more", corpus, queries, [("q1", "m1", "1")]))
    assert only(evaluate(plan, service.client)).approaches[0].left_out_calibration is None
    found = evaluate(msgspec.structs.replace(plan, collections=(*plan.collections, other)), service.client)
    left_out = found.collections[0].approaches[0].left_out_calibration
    assert left_out is not None
    assert (left_out.hits, left_out.expected_error) == (1, 0.5)


def test_all_are_taken_where_none_is_named_else_those_in_order() -> None:
    assert [each.name for each in approaches_named([])] == list(APPROACHES)
    assert [each.name for each in approaches_named(["graph", "vector", "graph"])] == ["graph", "vector"]


def test_an_unknown_one_is_refused_with_those_there_are() -> None:
    with pytest.raises(WrongSetting, match="no approach 'magic'; choose --approach from hybrid, vector"):
        approaches_named(["magic"])


@pytest.mark.parametrize("name", APPROACHES)
def test_each_is_a_search_the_service_takes(name: str) -> None:
    parameters = APPROACHES[name].parameters
    if parameters.keys() - SearchRequest.model_fields.keys() or parameters["mode"] not in get_args(Mode):
        pytest.skip(f"this service does not offer {name}: an evaluation says so and leaves it out")
    SearchRequest.model_validate({"q": "?", **parameters})
