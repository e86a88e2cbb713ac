"""The numbered commit, from raw records to rows, contributions and receipts; it never talks to a broker itself."""
