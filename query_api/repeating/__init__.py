"""The same question again: its further pages from one snapshot, its answer from the cache; it never searches."""
