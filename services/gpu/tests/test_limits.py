"""The limits of a GPU trial: their values, held against what vendors print of whole cards, their
sources, and when there is none."""

from typing import Any

import pytest

from hostbench.judge.trial import above_limit, measured_trial
from hostbench.model.host import Gpu, Gpus, PcieLink
from hostbench.model.limit import Limit
from hostbench.model.result import Verdict
from hostbench.model.table import Metric
from services.gpu.architecture import table
from services.gpu.limits import BYTES, OPERATIONS, PER_CYCLE, limits
from tests.each import each
from tests.unit.records import bare_trial, end, host, start

GIB = 1 << 30
UUID = "GPU-5b4e6d2a-0000-1111-2222-333344445555"
CAPABILITIES = ("7.0", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "12.0")
FMA, INTEGERS = ("fp64", "fp32", "fp16", "bf16"), ("int32", "int64")
TENSOR = ("fp16", "bf16", "tf32", "fp8", "int8", "fp64")
H100 = Gpu(
    index=0,
    backend="cuda",
    backends=("cuda", "opencl"),
    name="NVIDIA H100 80GB HBM3",
    uuid=UUID,
    pci="0000:19:00.0",
    compute_capability="9.0",
    compute_units=132,
    clock_hertz=1.98e9,
    memory_clock_hertz=2.619e9,
    bus_width_bits=5120,
    l2_bytes=50 * (1 << 20),
    memory_bytes=80 * GIB,
    ecc=True,
)
# As the vendor prints them: name, compute capability, multiprocessors, boost clock.
CARDS = {
    "V100": ("Tesla V100-SXM2-16GB", "7.0", 80, 1.53e9),
    "RTX 2080 Ti": ("NVIDIA GeForce RTX 2080 Ti", "7.5", 68, 1.545e9),
    "T4": ("Tesla T4", "7.5", 40, 1.59e9),
    "A100": ("NVIDIA A100-SXM4-40GB", "8.0", 108, 1.41e9),
    "RTX 3090": ("NVIDIA GeForce RTX 3090", "8.6", 82, 1.695e9),
    "A40": ("NVIDIA A40", "8.6", 84, 1.74e9),
    "Orin": ("Orin", "8.7", 16, 1.3e9),
    "RTX 4090": ("NVIDIA GeForce RTX 4090", "8.9", 128, 2.52e9),
    "L4": ("NVIDIA L4", "8.9", 58, 2.04e9),
    "H100": ("NVIDIA H100 80GB HBM3", "9.0", 132, 1.98e9),
    "B200": ("NVIDIA B200", "10.0", 148, 1.85e9),
    "RTX 5090": ("NVIDIA GeForce RTX 5090", "12.0", 170, 2.407e9),
}


def card(**changes: Any) -> Gpu:
    return H100.model_copy(update=changes)


def named(short: str) -> Gpu:
    name, capability, units, clock = CARDS[short]
    return card(name=name, compute_capability=capability, compute_units=units, clock_hertz=clock)


def found(
    gpu: Gpu | None = H100,
    workload: str = "fma",
    facts: dict[str, str] | None = None,
    metrics: dict[str, float | None] | None = None,
    **params: Any,
) -> dict[str, Limit]:
    known = {"device_uuid": (gpu.uuid if gpu else None) or UUID, "device_type": "gpu"}
    if gpu is not None:
        known |= {
            "device_name": gpu.name,
            "compute_capability": gpu.compute_capability or "",
            "compute_units": str(gpu.compute_units or ""),
        }
    known = {name: text for name, text in (known | (facts or {})).items() if text}
    trial = start(workload=workload, params=params, facts=known)
    gpus = Gpus(devices=() if gpu is None else (gpu,))
    return limits(host(gpus=gpus), trial, end().model_copy(update={"metrics": metrics or {}}))


def value(metric: str, *arguments: Any, **more: Any) -> float:
    limit = found(*arguments, **more)[metric]
    assert limit.value is not None, limit.reason
    return limit.value


def reason(metric: str, *arguments: Any, **more: Any) -> str:
    limit = found(*arguments, **more)[metric]
    assert limit.value is None and limit.reason is not None and limit.factors == ()
    return limit.reason


# ---- the table ----


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_figure_is_there_with_its_source_or_its_reason(capability: str) -> None:
    row = table().architectures[capability]
    assert set(row.fma) == set(FMA) and set(row.tensor) == set(TENSOR)
    assert set(row.int_add) == set(row.int_mul_add) == set(INTEGERS) and set(row.dp4a) == {"int8"}
    for cells in row.kernels.values():
        for cell in cells.values():
            for figure in (cell, *cell.products):
                assert figure.sources
                assert (figure.per_clock is None) == (figure.reason in table().reasons)


def test_every_source_and_every_reason_is_used() -> None:
    known = table()
    figures = [
        figure
        for row in known.architectures.values()
        for cells in row.kernels.values()
        for cell in cells.values()
        for figure in (cell, *cell.products)
    ]
    assert {source for figure in figures for source in figure.sources} == set(known.sources)
    assert {figure.reason for figure in figures if figure.reason} == set(known.reasons)
    assert set(known.architectures) == set(CAPABILITIES)


@each(
    ("short", "workload", "dtype", "tera"),
    [
        ("V100", "fma", "fp64", 7.8),
        ("V100", "fma", "fp32", 15.7),
        ("V100", "fma", "fp16", 31.4),
        ("V100", "tensor", "fp16", 125),
        ("RTX 2080 Ti", "fma", "fp32", 13.4),
        ("RTX 2080 Ti", "fma", "fp16", 26.9),
        ("RTX 2080 Ti", "tensor", "fp16", 53.8),
        ("RTX 2080 Ti", "tensor", "int8", 215.2),
        ("T4", "tensor", "fp16", 65),
        ("T4", "tensor", "int8", 130),
        ("A100", "fma", "fp64", 9.7),
        ("A100", "fma", "fp32", 19.5),
        ("A100", "fma", "fp16", 78),
        ("A100", "fma", "bf16", 39),
        ("A100", "tensor", "fp16", 312),
        ("A100", "tensor", "tf32", 156),
        ("A100", "tensor", "int8", 624),
        ("A100", "tensor", "fp64", 19.5),
        ("RTX 3090", "fma", "fp32", 35.6),
        ("RTX 3090", "fma", "fp16", 35.6),
        ("RTX 3090", "tensor", "fp16", 71),
        ("RTX 3090", "tensor", "bf16", 71),
        ("RTX 3090", "tensor", "tf32", 35.6),
        ("RTX 3090", "tensor", "int8", 284),
        ("A40", "tensor", "bf16", 149.7),
        ("A40", "tensor", "tf32", 74.8),
        ("A40", "tensor", "int8", 299.3),
        ("Orin", "fma", "fp32", 5.32),
        ("Orin", "tensor", "int8", 85),
        ("RTX 4090", "fma", "fp32", 82.6),
        ("RTX 4090", "tensor", "bf16", 165.2),
        ("RTX 4090", "tensor", "fp8", 330.3),
        ("RTX 4090", "tensor", "int8", 660.6),
        ("L4", "tensor", "fp16", 121),
        ("L4", "tensor", "fp8", 242.5),
        ("H100", "fma", "fp64", 33.5),
        ("H100", "fma", "fp32", 66.9),
        ("H100", "fma", "fp16", 133.8),
        ("H100", "tensor", "fp64", 66.9),
        ("B200", "tensor", "bf16", 2250),
        ("B200", "tensor", "fp8", 4500),
        ("RTX 5090", "fma", "fp32", 104.8),
        ("RTX 5090", "tensor", "fp16", 209.5),
        ("RTX 5090", "tensor", "int8", 838),
    ],
)
def test_rates_are_those_that_the_vendor_prints(
    short: str, workload: str, dtype: str, tera: float
) -> None:
    rate = value(OPERATIONS, named(short), workload, dtype=dtype)
    assert rate == pytest.approx(tera * 1e12, rel=0.01)


@pytest.mark.parametrize(("dtype", "tera"), [("bf16", 989.4), ("fp8", 1978.9), ("tf32", 494.7)])
def test_hopper_prints_its_tensor_rates_at_a_lower_clock(dtype: str, tera: float) -> None:
    gpu = card(clock_hertz=1.83e9)
    rate = value(OPERATIONS, gpu, "tensor", dtype=dtype)
    assert rate == pytest.approx(tera * 1e12, rel=0.005)


def test_dp4a_is_eight_operations_and_has_no_dtype() -> None:
    assert value(PER_CYCLE, workload="dp4a") == 132 * 64 * 8
    assert value(PER_CYCLE, workload="int_mul_add", dtype="int32") == 132 * 64 * 2
    assert value(PER_CYCLE, workload="int_add", dtype="int32") == 132 * 64 * 2


@pytest.mark.parametrize(
    ("gpu", "workload", "dtype", "part"),
    [
        (named("V100"), "tensor", "fp8", "tensor cores do not take this type"),
        (named("V100"), "fma", "bf16", "no bf16 arithmetic"),
        (named("RTX 3090"), "tensor", "fp64", "for correctness"),
        (named("Orin"), "tensor", "fp16", "INT8 alone"),
        (named("RTX 5090"), "tensor", "fp8", "disagree"),
        (named("L4").model_copy(update={"name": "NVIDIA L40"}), "tensor", "bf16", "data sheet"),
        (named("T4").model_copy(update={"name": "NVIDIA GeForce GTX 1660"}), "tensor", "fp16",
         "no tensor cores"),
        (named("RTX 5090"), "int_add", "int64", "IADD.64"),
        (card(compute_capability="13.0"), "fma", "fp32", "13.0 is not in architectures.yaml"),
        (card(compute_capability=None), "fma", "fp32", "no compute capability"),
        (card(compute_units=None), "fma", "fp32", "how many multiprocessors"),
    ],
)  # fmt: skip
def test_what_is_not_known_has_a_reason(gpu: Gpu, workload: str, dtype: str, part: str) -> None:
    for metric in (OPERATIONS, PER_CYCLE):
        assert part in reason(metric, gpu, workload, dtype=dtype)


@pytest.mark.parametrize(
    "name",
    ["NVIDIA GeForce MX450", "NVIDIA T400 4GB", "NVIDIA T600 Laptop GPU", "NVIDIA T1000 8GB",
     "Quadro T2000", "NVIDIA GeForce GTX 1650"],
)  # fmt: skip
def test_turing_without_tensor_cores_computes_products_with_its_vector_units(name: str) -> None:
    gpu = named("T4").model_copy(update={"name": name})
    for dtype in ("fp16", "int8"):
        assert "no tensor cores" in reason(PER_CYCLE, gpu, "tensor", dtype=dtype)
    vector = value(PER_CYCLE, gpu, "fma", dtype="fp16")
    assert value(PER_CYCLE, gpu, "gemm", dtype="fp16") == vector
    quadro = gpu.model_copy(update={"name": "Quadro RTX 4000"})
    assert value(PER_CYCLE, quadro, "tensor", dtype="fp16") == 40 * 1024


def test_a_card_like_another_is_not_taken_for_it() -> None:
    ada = named("L4")
    l40s = ada.model_copy(update={"name": "NVIDIA L40S"})
    assert value(PER_CYCLE, l40s, "tensor", dtype="bf16") == 58 * 1024


def test_a_product_of_matrices_has_the_limit_of_the_unit_that_computes_it() -> None:
    for dtype in ("fp16", "bf16", "tf32", "fp8", "fp64"):
        gemm = value(PER_CYCLE, workload="gemm", dtype=dtype)
        assert gemm == value(PER_CYCLE, workload="tensor", dtype=dtype)
    assert value(PER_CYCLE, workload="gemm", dtype="fp32") == value(PER_CYCLE, dtype="fp32")
    assert value(PER_CYCLE, named("V100"), "gemm", dtype="fp64") == 80 * 64
    assert "for correctness" in reason(PER_CYCLE, named("RTX 3090"), "gemm", dtype="fp64")


# ---- the clock ----


def test_the_highest_clock_and_the_observed_one_give_two_limits() -> None:
    slow: dict[str, float | None] = {"core_clock_hertz": 1.2e9}
    assert value(OPERATIONS, dtype="fp32", metrics=slow) == 132 * 256 * 1.98e9
    assert value(PER_CYCLE, dtype="fp32", metrics=slow) == 132 * 256
    for limit in found(dtype="fp32", metrics=slow).values():
        assert limit.tolerance == 0.02
        assert all(factor.source for factor in limit.factors)
        assert limit.value == pytest.approx(_product(limit))


def _product(limit: Limit) -> float:
    product = 1.0
    for factor in limit.factors:
        product *= factor.value
    return product


def test_a_card_that_clocks_higher_than_its_driver_says_is_no_mistake() -> None:
    fast: dict[str, float | None] = {"core_clock_hertz": 2.1e9}
    limit = found(dtype="fp32", metrics=fast)[OPERATIONS]
    assert limit.value == 132 * 256 * 2.1e9
    assert "observed during the trial, above the 1.980 GHz" in limit.factors[-1].source
    unknown = found(card(clock_hertz=None), dtype="fp32", metrics=fast)[OPERATIONS]
    assert unknown.value == 132 * 256 * 2.1e9
    blind = found(card(clock_hertz=None), dtype="fp32", metrics={"core_clock_hertz": None})
    assert blind[OPERATIONS].value is None and blind[PER_CYCLE].value == 132 * 256


@pytest.mark.parametrize(("share", "invalid"), [(1.0, False), (1.019, False), (1.021, True)])
def test_above_the_peak_at_the_observed_clock_a_trial_is_invalid(
    share: float, invalid: bool
) -> None:
    clock = 1.5e9
    rate = share * 132 * 256 * clock
    metrics: dict[str, float | None] = {
        OPERATIONS: rate,
        PER_CYCLE: rate / clock,
        "core_clock_hertz": clock,
    }
    with_clock = found(dtype="fp32", metrics=metrics)
    rows = tuple(
        Metric(name=name, unit="1", direction="higher", primary=name == OPERATIONS, description="")
        for name in metrics
    )
    # It is below the peak at the highest clock, so that one alone would not tell.
    assert rate < (with_clock[OPERATIONS].value or 0)
    assert bool(above_limit(metrics, with_clock, rows)) is invalid
    closing = end().model_copy(update={"metrics": metrics})
    judged = measured_trial(bare_trial(events=(start(), closing)), rows, with_clock)
    assert (judged.verdict is Verdict.INVALID) is invalid


# ---- devices that have none ----


def test_no_gpu_has_no_limit() -> None:
    cpu = {"device_type": "cpu", "device_name": "a processor"}
    for workload, metric in (("fma", OPERATIONS), ("copy", BYTES), ("host_to_device", BYTES)):
        assert "a processor is not a GPU" in reason(metric, workload=workload, facts=cpu)


def test_a_device_that_the_inventory_lacks() -> None:
    assert "does not have the device" in reason(OPERATIONS, None)
    assert "does not have the device" in reason(OPERATIONS, facts={"device_uuid": "GPU-other"})
    trial = start(workload="fma", params={"dtype": "fp32"}, facts={"device_uuid": UUID})
    old = limits(host(gpus=None), trial, end())
    assert "before hostbench looked" in (old[OPERATIONS].reason or "")


@pytest.mark.parametrize("workload", ["pointer_chase", "launch_latency", "nothing"])
def test_times_have_no_limit(workload: str) -> None:
    assert found(workload=workload) == {}


# ---- memory ----


@pytest.mark.parametrize("workload", ["read", "write", "copy", "triad"])
def test_memory_is_two_transfers_a_clock_over_its_width(workload: str) -> None:
    assert value(BYTES, workload=workload, size_bytes=GIB) == pytest.approx(3.352e12, rel=1e-3)


@pytest.mark.parametrize(
    ("clock", "bits", "giga"),
    [(10.501e9, 384, 1008), (0.8775e9, 4096, 900), (1.215e9, 5120, 1555), (14.001e9, 512, 1792)],
)
def test_bandwidths_are_those_that_the_vendor_prints(clock: float, bits: int, giga: float) -> None:
    gpu = card(memory_clock_hertz=clock, bus_width_bits=bits)
    assert value(BYTES, gpu, "copy", size_bytes=GIB) == pytest.approx(giga * 1e9, rel=0.002)


@pytest.mark.parametrize(
    ("ecc", "state"), [(True, "is on"), (False, "is off"), (None, "is unknown")]
)
def test_the_limit_says_whether_ecc_is_on(ecc: bool | None, state: str) -> None:
    limit = found(card(ecc=ecc), "copy", size_bytes=GIB)[BYTES]
    assert state in limit.factors[-1].source and "ECC" in limit.factors[-1].source


def test_what_the_cache_may_have_served_is_in_the_tolerance() -> None:
    cache = H100.l2_bytes or 0
    just = found(workload="copy", size_bytes=4 * cache)[BYTES]
    assert just.tolerance == pytest.approx(0.02 + 1 / 3, abs=1e-3)
    assert found(workload="copy", size_bytes=100 * GIB)[BYTES].tolerance < 0.021
    assert "has a part in the figure" in reason(BYTES, workload="copy", size_bytes=3 * cache)


@pytest.mark.parametrize(
    ("gpu", "size", "part"),
    [
        (card(memory_clock_hertz=None), GIB, "memory clock and bus width"),
        (card(bus_width_bits=None), GIB, "memory clock and bus width"),
        (card(l2_bytes=None), GIB, "L2 cache is not known"),
        (card(uuid=f"MIG-{UUID}"), GIB, "its share of the memory is unknown"),
        (H100, "auto", "how large its buffers are"),
    ],
)
def test_memory_that_is_not_known(gpu: Gpu, size: object, part: str) -> None:
    assert part in reason(BYTES, gpu, "copy", size_bytes=size)


# ---- the link ----

LINK = PcieLink(
    transfers_per_second=2.5e9,
    lanes=16,
    transfers_per_second_most=32e9,
    lanes_most=16,
    port_transfers_per_second_most=32e9,
    port_lanes_most=16,
)


@pytest.mark.parametrize("workload", ["host_to_device", "device_to_host"])
@pytest.mark.parametrize(
    ("link", "giga"),
    [
        ("generation 1 x16 when idle, at most 5 x16", 63.02),
        ("generation 4 x16 when idle, at most 4 x16", 31.51),
        ("generation 3 x8 when idle, at most 3 x8", 7.877),
        ("generation 1 x8 when idle, at most 4 x16", 15.75),
        ("generation 2 x16", 8.0),
        ("generation 6 x16 when idle, at most 6 x16", 121.0),
    ],
)
def test_a_link_is_generation_times_lanes_times_encoding(
    workload: str, link: str, giga: float
) -> None:
    limit = found(workload=workload, facts={"pcie": link})[BYTES]
    assert limit.value == pytest.approx(giga * 1e9, rel=1e-3)
    assert limit.factors[0].source == f"NVML: {link}"
    assert "packets of 256 bytes" in limit.factors[-1].source


def test_both_directions_have_lanes_of_their_own() -> None:
    facts = {"pcie": "generation 1 x16 when idle, at most 5 x16"}
    one = value(BYTES, workload="host_to_device", facts=facts)
    assert value(BYTES, workload="bidirectional", facts=facts) == 2 * one


def test_without_nvml_the_kernel_tells_the_link_and_the_slot_bounds_it() -> None:
    assert value(BYTES, card(link=LINK), "host_to_device") == pytest.approx(63.02e9, rel=1e-3)
    slot = LINK.model_copy(update={"port_transfers_per_second_most": 16e9, "lanes": 8})
    assert value(BYTES, card(link=slot), "host_to_device") == pytest.approx(15.75e9, rel=1e-3)
    hidden = card(link=None, link_reason="0000:19:00.0: this is a virtual machine")
    assert reason(BYTES, hidden, "host_to_device") == "0000:19:00.0: this is a virtual machine"


def test_known_packets_leave_their_share() -> None:
    packets = LINK.model_copy(update={"payload_bytes": 256})
    whole = value(BYTES, card(link=LINK), "host_to_device")
    assert value(BYTES, card(link=packets), "host_to_device") == pytest.approx(whole * 256 / 276)


@pytest.mark.parametrize("name", ["NVIDIA GH200 480GB", "NVIDIA GB200", "NVIDIA GB10", "Orin"])
def test_what_is_joined_otherwise_has_no_limit(name: str) -> None:
    gpu = card(name=name, link=LINK)
    assert "something else than PCI Express" in reason(BYTES, gpu, "host_to_device")


def test_between_cards_the_limit_is_unknown() -> None:
    assert "NVLink" in reason(BYTES, workload="peer_to_peer")
