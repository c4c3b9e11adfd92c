"""The service of the CPU subsystem for an ASGI server; see hostbench.service."""

from hostbench.service.app import create_app

app = create_app("cpu")
