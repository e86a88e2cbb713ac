"""Which names are the same entity: keys of what is certain, scored pairs of what a person has to decide."""
