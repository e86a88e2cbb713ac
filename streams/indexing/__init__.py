"""The numbered commit, from raw records to rows, contributions, receipts; it never takes or acknowledges a record."""
