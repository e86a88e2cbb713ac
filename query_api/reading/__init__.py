"""What a search reads: one snapshot of both stores, and its texts; it never decides what is relevant."""
