"""Benchmark programs and peers as child processes: start, parameters, output."""
