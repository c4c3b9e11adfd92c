"""Campaigns: one suite on many hosts, by the engine that runs them, Kubernetes or Slurm."""
