"""The part of a kubelet that gives the logs of its pods, for simulated nodes: the API server asks
it, as it asks a real one."""

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextlib.contextmanager
def pod_logs(certificate: Path, key: Path, log_of: Callable[[str, str], str]) -> Iterator[int]:
    """Answer at the port yielded. `log_of` returns the log of a pod, by namespace and name."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # /containerLogs/NAMESPACE/POD/CONTAINER?OPTIONS
            _, _, namespace, pod, _ = self.path.split("/")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(log_of(namespace, pod).encode())

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
