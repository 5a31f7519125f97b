"""The operator as a whole: its options, its connection and its controllers put together."""
