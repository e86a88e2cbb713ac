"""A retriever for LangChain; needs `thalweg[langchain]`."""

from typing import Any

from pydantic import Field

from query_api.integrations import metadata_of, needs
from query_api.typed_client import Client

with needs("langchain"):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class ThalwegRetriever(BaseRetriever):
    """Passages that the service finds. `parameters` are further ones of the search; a call may give others."""

    client: Client = Field(default_factory=Client, exclude=True)
    k: int = 10
    parameters: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **parameters: Any) -> list[Document]:  # noqa: ARG002
        """Raises Failure, as Client.search does."""
        found = self.client.search(query, **{"k": self.k, **self.parameters, **parameters})
        return [Document(id=hit.chunk_id, page_content=hit.text, metadata=metadata_of(hit)) for hit in found.hits]
