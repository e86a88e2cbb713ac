"""Which re-ranker the settings name; its libraries are imported only where they name it."""

from query_api.rerankers.port import HOW_TO_CONFIGURE, Reranker, RerankerRefused
from query_api.settings import RerankerSettings


def load_reranker(settings: RerankerSettings) -> Reranker:
    """The re-ranker that the settings name. May take many seconds. Raises RerankerRefused where there is none."""
    match settings.provider:
        case "cross-encoder":
            from query_api.rerankers.cross_encoder import CrossEncoderReranker  # torch: many seconds to import

            return CrossEncoderReranker(settings)
        case "endpoint":
            from query_api.rerankers.endpoint import EndpointReranker  # only where one is configured

            return EndpointReranker(settings)
        case "none":
            raise RerankerRefused(HOW_TO_CONFIGURE)
