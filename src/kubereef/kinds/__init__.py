"""What a kind is: its names, its verbs, and the few functions that make it behave as it does."""
