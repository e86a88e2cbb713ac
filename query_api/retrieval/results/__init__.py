"""What becomes of places on their way to hits: which stay, how likely each is relevant, what is told beside it."""
