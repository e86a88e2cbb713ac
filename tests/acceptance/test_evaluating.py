"""A labelled folder evaluated as a user does it: loaded through Kafka, asked, reported; the second time it is there."""

import gzip
import json
from pathlib import Path

import httpx
import pytest

from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

SUBJECTS = ["heron", "otter", "badger", "falcon", "beaver", "lynx", "salmon", "viper", "marten", "raven"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten documents, the last of them nothing but its title, and four questions, one of them about two documents."""
    animals = tmp_path / "animals"
    (animals / "qrels").mkdir(parents=True)
    documents = [
        {
            "_id": str(number),
            "title": subject.title(),
            "text": f"The {subject} lives by river {number}.",
            "metadata": {},
        }
        for number, subject in enumerate(SUBJECTS[:9])
    ]
    documents.append({"_id": "9", "title": "Raven", "text": "", "metadata": {"kind": "bird"}})
    with gzip.open(animals / "corpus.jsonl.gz", "wt") as lines:
        lines.writelines(json.dumps(document) + "\n" for document in documents)
    questions = ["where does the heron live", "where does the otter live", "badger and falcon", "raven"]
    (animals / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": f"q{number}", "text": text}) + "\n" for number, text in enumerate(questions))
    )
    judged = ["q0\t0\t1", "q1\t1\t1", "q2\t2\t1", "q2\t3\t1", "q3\t9\t1"]
    (animals / "qrels" / "dev.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    return animals


def test_an_evaluation_loads_once_asks_and_reports(hashing: Installation, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = hashing.run_json("evaluate", str(folder), "--out", str(out))
    (found,) = first["collections"]
    assert (found["documents"], found["asked"], found["split"]) == (10, 4, "dev")
    assert (found["loaded"]["sent"], found["loaded"]["missing"]) == (10, [])
    approaches = {approach["name"]: approach for approach in found["approaches"]}
    assert set(approaches) >= {"hybrid", "vector", "keyword", "graph"}
    assert not set(approaches) & found["not_offered"].keys()
    keyword = approaches["keyword"]
    assert keyword["measures"]["R@5"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert keyword["measures"]["AllGold@5"]["mean"] == 1.0
    assert keyword["questions"][3]["documents"][0] == "9"
    assert {"keyword", "texts", "total", "first hit", "answer"} <= keyword["latencies"].keys()
    assert keyword["first_hit_calibration"]["hits"] == 4
    assert 0 <= keyword["calibration"]["expected_error"] <= 1
    assert json.loads((out / "report.json").read_text()) == first
    assert "Calibration" in (out / "report.md").read_text()
    page = (out / "report.html").read_text()
    assert 'style="--share:' in page
    question = "where does the otter live"
    recorded = f"{hashing.url}/v1/retrievals?collection={found['loaded']['collection']}&limit=200"
    wait_until(lambda: question in httpx.get(recorded).text, "the searches are on the provenance topic and read")
    assert {each["counted"] for each in httpx.get(recorded).json()["retrievals"]} == {False}
    assert question not in httpx.get(f"{hashing.url}/v1/analytics/queries?limit=1000").text
    assert "http" not in page.replace("http-equiv", "").replace("over HTTP", "")

    collection = found["loaded"]["collection"]
    listed = httpx.get(f"{hashing.url}/v1/documents", params={"collection": collection}).json()["documents"]
    again = hashing.run_json("evaluate", str(folder), "--approach", "keyword", "--group", "passage", "--lower-case")
    assert again["collections"][0]["loaded"]["collection"] == collection
    assert again["collections"][0]["loaded"]["sent"] == 0
    assert again["collections"][0]["approaches"][0]["measures"]["R@5"]["mean"] == 1.0
    relisted = httpx.get(f"{hashing.url}/v1/documents", params={"collection": collection}).json()["documents"]
    assert relisted == listed, "nothing was written again"


def test_questions_made_of_what_is_indexed_are_asked_of_it(hashing: Installation, folder: Path, tmp_path: Path) -> None:
    collection = hashing.run_json("evaluate", str(folder), "--approach", "keyword")["collections"][0]["loaded"][
        "collection"
    ]
    made = hashing.run_json(
        "questions", collection, "--kinds", "exact", "--count", "5", "--out", str(tmp_path / "made")
    )
    assert made == {"collection": collection, "seed": 1, "documents": 10, "questions": {"exact": 5}}
    asked = ["evaluate", str(tmp_path / "made"), "--within", collection, "--approach", "keyword"]
    [found] = hashing.run_json(*asked)["collections"]
    assert found["kinds"][0]["kind"] == "exact"
    assert found["approaches"][0]["measures"]["R@5"]["mean"] == 1.0


def test_confirmed_questions_are_asked_as_people_corrected_them(
    hashing: Installation, folder: Path, tmp_path: Path
) -> None:
    collection = hashing.run_json("evaluate", str(folder), "--approach", "keyword")["collections"][0]["loaded"][
        "collection"
    ]
    none = hashing.run("questions", collection, "--confirmed", "--out", str(tmp_path / "none"), check=False)
    assert (none.returncode, "is confirmed" in none.stderr) == (1, True), none
    made = ("--kinds", "exact", "--count", "3", "--to-judge", "--out", str(tmp_path / "made"))
    hashing.run("questions", collection, *made)
    listed = httpx.get(f"{hashing.url}/v1/ground-truth", params={"collection": collection}).json()["questions"]
    assert [each["kind"] for each in listed] == ["exact"] * 3
    right = {"text": "where does the heron live", "documents": listed[0]["documents"], "answer": "by the river"}
    for each, said in zip(
        listed, ({"judgement": "confirmed", "corrected": right}, {"judgement": "rejected"}), strict=False
    ):
        httpx.put(f"{hashing.url}/v1/ground-truth/{each['id']}", json=said).raise_for_status()
    out = tmp_path / "truth"
    assert hashing.run_json("questions", collection, "--confirmed", "--out", str(out))["questions"] == {"exact": 1}
    [question] = (out / "queries.jsonl").read_text().splitlines()
    assert (json.loads(question)["text"], json.loads(question)["metadata"]["answer"]) == (
        right["text"],
        right["answer"],
    )
    for command in (("evaluate", "--approach", "keyword"), ("evaluate", "answers")):
        assert hashing.run_json(*command, str(out), "--within", collection)


def test_its_collection_can_be_dropped_and_is_made_again(hashing: Installation, folder: Path) -> None:
    """Ids that mean something in an address go like any other."""
    corpus = folder / "corpus.jsonl.gz"
    odd = [
        {"_id": name, "title": name, "text": f"Of {name}."} for name in ("..", "reports/status", "a b/ü?#%2F", "/x//")
    ]
    with gzip.open(corpus, "at") as lines:
        lines.writelines(json.dumps(document) + "\n" for document in odd)
    evaluate = ("evaluate", str(folder), "--approach", "keyword")
    collection = hashing.run_json(*evaluate)["collections"][0]["loaded"]["collection"]
    refused = hashing.run("collections", "delete", collection, check=False, text_in="")
    assert (refused.returncode, "add --yes" in refused.stderr) == (2, True)
    dropped = hashing.run_json("collections", "delete", collection, "--yes")
    assert (dropped["documents"], dropped["left"]) == (14, 0)
    assert collection not in {each["name"] for each in hashing.run_json("collections", "list")["collections"]}
    assert hashing.verify()["ok"]
    assert hashing.run_json(*evaluate)["collections"][0]["loaded"]["sent"] == 14
