"""This host: its inventory, its idle gate, its lock."""
