"""The text tables in memory and on disk: keyword search, vector search and filters over immutable segments."""
