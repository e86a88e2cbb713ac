"""Facts of plain English sentences, by closed lists of words and no model: words → noun phrases → subjects → facts."""
