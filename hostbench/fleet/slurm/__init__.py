"""Campaigns on Slurm: one job a node."""
