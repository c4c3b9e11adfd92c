"""The service of a subsystem on one host: a small HTTP API around its benchmark program."""

from hostbench.service.app import create_app

__all__ = ["create_app"]
