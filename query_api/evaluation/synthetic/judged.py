"""Made questions that people judge in the console, and those that they confirmed."""

from collections.abc import Sequence

import msgspec

from query_api.client import ServiceClient
from query_api.evaluation.synthetic.generator import QuestionSet
from query_api.evaluation.synthetic.source import GeneratedQuestion, IndexedDocument
from schemas.errors import Failure
from schemas.ground_truth import GROUND_TRUTH_PATH


def put_to_judge(client: ServiceClient, questions: QuestionSet) -> None:
    """Each with the sentences or fields that its path rests on. What is there already stays as it is judged."""
    made = [
        {
            "text": each.text,
            "documents": list(each.gold),
            "answer": each.answer,
            "kind": each.kind,
            "passages": [{"document_id": step.source, "sentence": step.evidence} for step in each.path],
        }
        for each in questions.made
    ]
    client.post(GROUND_TRUTH_PATH, msgspec.json.encode({"collection": questions.collection, "questions": made}))


def confirmed_questions(client: ServiceClient, collection: str, documents: Sequence[IndexedDocument]) -> QuestionSet:
    """As people corrected them. Raises Failure where none is confirmed."""
    asked = {"collection": collection, "judgement": "confirmed", "limit": 200}
    found = tuple(
        GeneratedQuestion(each["kind"], each["text"], dict.fromkeys(each["documents"], 1), answer=each["answer"])
        for each in client.listed(GROUND_TRUTH_PATH, "questions", asked)
    )
    if not found:
        raise Failure(
            f"No question about the collection {collection!r} is confirmed. Judge some in the web console, under "
            "Evaluation; `--to-judge` puts more there."
        )
    return QuestionSet(collection=collection, seed=0, wanted=len(found), documents=tuple(documents), made=found)
