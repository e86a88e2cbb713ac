"""A retriever for Haystack; needs `thalweg[haystack]`."""

from typing import Any

from query_api.integrations import metadata_of, needs
from query_api.typed_client import Client

with needs("haystack"):
    from haystack import Document, component
    from haystack.utils import Secret

Parameters = dict[str, Any] | None


@component
class ThalwegRetriever:
    """Passages that the service at `url` finds. `parameters` are further ones of the search; a run may give others."""

    def __init__(
        self, url: str | None = None, api_key: Secret | None = None, top_k: int = 10, parameters: Parameters = None
    ) -> None:
        self.url, self.api_key, self.top_k, self.parameters = url, api_key, top_k, parameters
        self._client = Client(url, api_key.resolve_value() if api_key else None)

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None, parameters: Parameters = None) -> dict[str, list[Document]]:
        """Raises Failure, as Client.search does."""
        asked = {**(self.parameters or {}), **(parameters or {}), "k": top_k or self.top_k}
        hits = self._client.search(query, **asked).hits
        found = [Document(id=hit.chunk_id, content=hit.text, meta=metadata_of(hit), score=hit.score) for hit in hits]
        return {"documents": found}
