"""Campaigns on Kubernetes: one Job a node. Only this package imports lightkube."""
