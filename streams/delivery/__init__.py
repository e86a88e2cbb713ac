"""What the worker sends, confirmed: contributions, receipts, dead letters; it never decides what to send."""
