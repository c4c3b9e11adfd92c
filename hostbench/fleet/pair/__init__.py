"""The two ends of a pair of nodes that measure the network between them."""
