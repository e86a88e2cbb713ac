"""A retrieval under way: counted, sent as frames, kept for resuming; it never finds and never ranks."""
