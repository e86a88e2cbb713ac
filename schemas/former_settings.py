"""Settings that there were, and what to do instead of setting them."""

from collections.abc import Iterator

_OF = {
    "worker": {
        "batch_records batch_wait_seconds later_batch_wait_seconds graph_batch_records commit_documents commit_bytes "
        "gather_seconds encode_texts commit_interval_seconds": "The worker sizes and paces its batches and commits.",
        "broker_wait_seconds": "A start waits a minute for the first broker.",
        "watchdog_seconds": "A worker that makes no progress in spite of lag ends after five minutes.",
        "snapshot_idle_seconds snapshot_min_seconds snapshot_max_seconds snapshot_share": "The worker decides when it "
        "makes a snapshot of the graph; kept_snapshots is how many are kept.",
        "communities community_min_seconds community_share": "Communities are always found, rarely enough that it "
        "takes little time.",
        "maintenance_seconds": "The tables are maintained where it pays.",
        "parser_cpu_seconds parser_wall_seconds parser_memory_bytes parser_output_bytes": "The limits of parsing one "
        "document are fixed: a document that exceeds them is a dead letter, to be split or converted.",
    },
    "storage": {
        "graph_buffer_bytes": "Publishing the graph takes at most a quarter of the memory that the worker may use; "
        "THALWEG_WORKER__PUBLISH_GRAPH=false turns it off.",
    },
    "embedding": {
        "threads": "The encoder uses the processors that its process may use: restrict these, by a container's CPU "
        "quota or 'taskset'.",
        "timeout_seconds batch_texts": "An endpoint gets small requests with half a minute for each; those that it "
        "refuses are divided.",
    },
    "chunking": {
        "passage_overlap": "It is a collection's: 'thalweg collections settings COLLECTION chunking parent_overlap=…'.",
        "chunk_overlap": "It is a collection's: 'thalweg collections settings COLLECTION chunking child_overlap=…'.",
    },
    "language_model": {
        "max_answer_bytes": "An answer about one chunk has a megabyte at most.",
        "parallel": "The model is asked about four chunks at once; for a slow one raise "
        "THALWEG_LANGUAGE_MODEL__TIMEOUT_SECONDS.",
    },
    "reranker": {
        "budget_seconds": "A search waits a few seconds for the model: for a slow one lower THALWEG_RERANKER__DEPTH.",
    },
    "service": {
        "session_token_seconds": "A session token is good for ten minutes.",
        "search_threads max_search_wait_seconds": "A search that would wait long for its turn is refused; "
        "THALWEG_SERVICE__SEARCH_PROCESSES lets more run at once.",
        "budgets budgets.embed_seconds budgets.vector_seconds budgets.keyword_seconds budgets.structured_seconds "
        "budgets.graph_seconds budgets.texts_seconds": "The time of each step of a search is fixed; an answer names "
        "the steps that took longer.",
        "max_streams max_status_streams": "The number of streams is fixed: run another service on the data directory "
        "for more.",
        "send_timeout_seconds": "A client that reads nothing for half a minute is disconnected, and may resume.",
        "keep_alive_seconds": "A stream is never silent for as long as proxies allow by default.",
        "replay_retrievals replay_seconds replay_bytes": "A stream can be resumed for five minutes.",
        "cursor_snapshots cursor_seconds": "The newest snapshots are kept for cursors for five minutes.",
        "cache_entries cache_seconds cache_bytes": "The cache is small, and never stale; a search with cache=false "
        "does without.",
        "provenance_buffer provenance_flush_seconds": "Retrievals wait in memory while Kafka is away; those that are "
        "dropped are counted.",
        "refresh_seconds": "What is on disk is looked at every two seconds.",
        "canary_seconds": "Freshness is measured once a minute where no document measures it.",
        "write_timeout_seconds": "A write waits a few seconds for Kafka.",
        "max_request_bytes request_bytes_at_once": "The limits of bodies follow THALWEG_LIMITS__MAX_DOCUMENT_BYTES "
        "where that is large.",
        "max_batch_documents": "A request has a thousand documents at most: send more requests.",
    },
    "broker": {
        "": "Give the port to 'thalweg up' or 'thalweg kafka' as --kafka-port; set JAVA_HOME for another Java.",
        "port": "Give it to 'thalweg up' or 'thalweg kafka' as --kafka-port.",
        "heap": "It grows with THALWEG_KAFKA__MAX_RECORD_BYTES.",
        "java_home": "Set JAVA_HOME.",
        "cache_dir": "Set XDG_CACHE_HOME.",
    },
}


def _sentences() -> Iterator[tuple[tuple[str, ...], str]]:
    for table, by_names in _OF.items():
        for names, sentence in by_names.items():
            for name in names.split() or [""]:
                yield tuple(filter(None, (table, *name.split(".")))), f"this setting is gone. {sentence}"


FORMER = dict(_sentences())
"""The message about one, by its path: `("worker", "gather_seconds")`. Tables that are gone are among them."""
