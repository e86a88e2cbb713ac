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
        self._client, self._parameters = client or Client(), parameters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Raises Failure, as Client.search does."""
        hits = self._client.search(query_bundle.query_str, **self._parameters).hits
        nodes = [TextNode(id_=hit.chunk_id, text=hit.text, metadata=metadata_of(hit)) for hit in hits]
        return [NodeWithScore(node=node, score=hit.score) for node, hit in zip(nodes, hits, strict=True)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
