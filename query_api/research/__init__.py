"""Research over what searches find: questions taken apart, searched in rounds, and written up with their sources; and
claims compared with what documents state."""
