"""Study aids made of what documents state, without a language model: cards, questions, concept maps, learning paths."""
