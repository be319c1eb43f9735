"""Benchmarks that anyone can run: see docs/benchmarks.md."""
