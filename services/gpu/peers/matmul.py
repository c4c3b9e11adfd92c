"""Products of square matrices with PyTorch: `matmul.py DTYPE N SECONDS`, by events of the device.

Prints one JSON object. It is started as a program of its own and knows nothing of hostbench.
"""

import json
import statistics
import sys
import time
from typing import Any

WARM_UP = 10
LEAST = 5


def main() -> None:
    """Multiply until the time is over; tell the median of the products' times."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    dtype, n, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if not torch.cuda.is_available():
        sys.exit("PyTorch has no CUDA device")
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    kinds = {
        "fp16": torch.float16,
        "bf16": torch.bfloat16,
        "tf32": torch.float32,
        "fp32": torch.float32,
        "fp64": torch.float64,
    }
    a, b = (torch.randn(n, n, device="cuda", dtype=kinds[dtype]) for _ in range(2))
    for _ in range(WARM_UP):
        torch.matmul(a, b)
    torch.cuda.synchronize()
    times = _times(torch, a, b, seconds)
    name = torch.cuda.get_device_name()
    rate = 2.0 * n**3 / statistics.median(times)
    result = {"device": name, "n": n, "products": len(times), "operations_per_second": rate}
    sys.stdout.write(f"{json.dumps(result)}\n")


def _times(torch: Any, a: Any, b: Any, seconds: float) -> list[float]:
    """Of each product, in seconds."""
    pairs: list[tuple[Any, Any]] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or len(pairs) < LEAST:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.matmul(a, b)
        end.record()
        pairs.append((begin, end))
        # Some are queued ahead, so that the device never waits for this process.
        if len(pairs) >= LEAST:
            pairs[-LEAST][1].synchronize()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) * 1e-3 for begin, end in pairs]


if __name__ == "__main__":
    main()
