"""A retriever for LlamaIndex; needs `thalweg[llama-index]`."""

import asyncio
from typing import Any

from query_api.integrations import metadata_of, needs
from query_api.typed_client import Client

with needs("llama-index"):
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode


class ThalwegRetriever(BaseRetriever):
    """Passages that the service finds; `parameters` are those of the search."""

    def __init__(self, client: Client | None = None, **parameters: Any) -> None:
        super().__init__()
        self._client = client or Client()
        self._parameters = parameters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Raises Failure, as Client.search does."""
        found = self._client.search(query_bundle.query_str, **self._parameters)
        return [
            NodeWithScore(node=TextNode(id_=hit.chunk_id, text=hit.text, metadata=metadata_of(hit)), score=hit.score)
            for hit in found.hits
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
