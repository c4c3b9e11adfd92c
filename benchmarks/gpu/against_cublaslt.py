"""The tensor cores' pipe rate against a product of 8192 × 8192 by cuBLASLt on the same card: a
product cannot be faster than the pipes, so ours has to be above it.

usage: python -m benchmarks.gpu.against_cublaslt [PAIRS] (default: 7)
"""

import sys
from functools import partial

from benchmarks.arguments import given_number
from benchmarks.gpu.trials import RATE, Row, Table, at_least, device, giga, metric
from benchmarks.pairs import Comparison, interleaved
from benchmarks.programs import Unsupported

N = 8192
DTYPES = ("bf16", "fp16", "fp8", "tf32", "fp64")
TARGET = at_least(1.0)


def main() -> None:
    pairs = given_number(7)
    device()
    table = Table("against_cublaslt", ("dtype", "tensor, Gop/s", "cuBLASLt"))
    for dtype in DTYPES:
        ours, theirs = f"tensor --dtype {dtype}", f"gemm --dtype {dtype} --n {N}"
        try:
            found = interleaved(pairs, partial(metric, ours, RATE), partial(metric, theirs, RATE))
        except Unsupported as skipped:
            print(f"{dtype}: {skipped}", file=sys.stderr)
            continue
        compared = Comparison(TARGET, tuple(a for a, _ in found), tuple(b for _, b in found))
        cells = (dtype, giga(compared.ours), giga(compared.theirs))
        table.add(Row(cells, compared, (f"gpu-bench {ours}", f"gpu-bench {theirs}")))
    table.end()


if __name__ == "__main__":
    main()
