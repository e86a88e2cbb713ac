"""Dead letters: read, counted, redriven; and the order to skip a batch."""
