"""Benchmarks: `make bench` runs them all and prints ratios, since the machine that measures is never quiet."""
