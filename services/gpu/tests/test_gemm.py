"""gemm on stand-ins for the driver and for cuBLASLt."""

import os
from functools import cache
from pathlib import Path

import pytest

from services.gpu.tests import cuda_stub
from services.gpu.tests.cuda_stub import CUBLASLT, read_report
from services.gpu.tests.program import call, measure
from tests.benchmark import FAILED, RESOURCE, UNSUPPORTED, WRONG, refused

SMALL = ("--n=64", "--duration-s=0.05", "--warmup-s=0")
DTYPES = ("fp16", "bf16", "tf32", "fp32", "fp64", "fp8")
OPENING = (
    "cublasLtCreate",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmul",
)
NOT_SUPPORTED, ALLOC_FAILED = 15, 3


@cache
def with_the_library() -> Path:
    directory = cuda_stub.scratch() / "with-cublaslt"
    directory.mkdir()
    return cuda_stub.build(cuda_stub.link_both(directory), CUBLASLT)


def environment(**settings: str | int) -> dict[str, str]:
    return cuda_stub.environment(with_the_library(), **settings)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sampled(7)
def test_every_type(dtype: str) -> None:
    trial = measure("gemm", f"--dtype={dtype}", *SMALL, env=environment())
    (library,) = trial.start["libraries"]
    assert library["name"] == "cuBLASLt" and library["version"] == "12.9.1"
    assert library["path"] == os.path.realpath(with_the_library() / CUBLASLT)
    assert trial.metrics["operations_per_second"] > 0
    assert 0 <= trial.metrics["residual"] <= 1


def test_everything_is_released(tmp_path: Path) -> None:
    file = tmp_path / "report"
    measure("gemm", *SMALL, env=environment(report=str(file)))
    left = read_report(file).left
    assert left and set(left.values()) == {0}, left


def test_without_the_library_it_is_skipped(tmp_path: Path) -> None:
    cuda_stub.link_both(tmp_path)
    result = call("gemm", *SMALL, env=cuda_stub.environment(tmp_path))
    looked_for = ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11")
    refused(result, UNSUPPORTED, "no cuBLASLt", *looked_for, "LD_LIBRARY_PATH")


def test_another_library_of_that_name(tmp_path: Path) -> None:
    cuda_stub.link_both(tmp_path)
    cuda_stub.build(tmp_path, CUBLASLT, "cublasLtMatmul=other")
    result = call("gemm", *SMALL, env=cuda_stub.environment(tmp_path))
    refused(result, UNSUPPORTED, "libcublasLt.so.12 has no cublasLtMatmul")


@pytest.mark.parametrize("name", OPENING)
def test_a_call_that_fails(name: str) -> None:
    env = environment(fail=f"{name}:1+:{NOT_SUPPORTED}")
    result = call("gemm", *SMALL, env=env)
    refused(result, FAILED, name, "CUBLAS_STATUS_NOT_SUPPORTED", "bf16", "order 64", "12.9.1")


@pytest.mark.parametrize("nth", [1, 5])
def test_an_algorithm_that_is_refused_leaves_the_others(nth: int, tmp_path: Path) -> None:
    """Of three proposals the second is none; another is one call to see, and three to time."""
    file = tmp_path / "report"
    fail = f"cublasLtMatmul:{nth}:{NOT_SUPPORTED}"
    trial = measure("gemm", *SMALL, env=environment(fail=fail, report=str(file)))
    assert trial.metrics["operations_per_second"] > 0
    assert read_report(file).calls["cublasLtMatmul"] > 5


def test_no_memory_for_the_library() -> None:
    env = environment(fail=f"cublasLtCreate:1:{ALLOC_FAILED}")
    refused(call("gemm", *SMALL, env=env), RESOURCE, "CUBLAS_STATUS_ALLOC_FAILED")


def test_a_failure_in_mid_run() -> None:
    env = environment(fail="cublasLtMatmul:12+:13")
    refused(call("gemm", *SMALL, env=env), FAILED, "CUBLAS_STATUS_EXECUTION_FAILED")


def test_no_algorithm() -> None:
    result = call("gemm", "--dtype=fp8", "--n=72", *SMALL[1:], env=environment())
    refused(result, FAILED, "cublasLtMatmulAlgoGetHeuristic", "fp8 products of order 72")


def test_an_older_card_lacks_the_type() -> None:
    result = call("gemm", "--dtype=fp8", *SMALL, env=environment(cc="8.0"))
    refused(result, UNSUPPORTED, "fp8 from compute capability 8.9 on", "8.0")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sampled(7)
def test_a_wrong_product_has_no_figure(dtype: str) -> None:
    """The corners are always among what is sampled."""
    last = 64 * 64 - 1
    result = call("gemm", f"--dtype={dtype}", *SMALL, env=environment(product=last))
    refused(result, WRONG, "row 63, column 63", "do not trust")


def test_matrices_that_do_not_fit() -> None:
    result = call("gemm", "--n=16384", "--duration-s=0.05", env=environment())
    refused(result, RESOURCE, "memory")
