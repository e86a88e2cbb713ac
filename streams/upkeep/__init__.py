"""When the stores are put in shape and snapshots made; it never changes what they say."""
