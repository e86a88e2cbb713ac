"""When tables are put in shape and snapshots are due; it never changes what a store says."""
