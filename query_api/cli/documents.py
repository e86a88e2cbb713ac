"""The documents of a collection, as the service lists them."""

from typing import Any

from query_api.cli.client import ServiceClient

PAGE_DOCUMENTS = 1_000


def listed(client: ServiceClient, collection: str) -> dict[str, str]:
    """{document id: position} of every document the service lists in the collection."""
    found: dict[str, str] = {}
    asked: dict[str, Any] = {"collection": collection, "limit": PAGE_DOCUMENTS}
    while True:
        page = client.get("/v1/documents", asked)
        found |= {document["id"]: document["position"] for document in page["documents"]}
        if page["next_cursor"] is None:
            return found
        asked["cursor"] = page["next_cursor"]
