"""Campaigns on Slurm: one job a node or a pair."""
