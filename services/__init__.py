"""The services, one package each. They never import one another."""
