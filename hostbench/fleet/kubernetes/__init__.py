"""Campaigns on Kubernetes: one Job a node, or two a pair. Only this package imports lightkube."""
