"""One retrieval, from a question to its hits."""
