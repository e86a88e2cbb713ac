"""The graph: its tables, what contributions make of them, its snapshots. Readers never import `publication`."""
