"""The query service: hybrid search streamed over Server-Sent Events, writes to the log, provenance to its topic."""
