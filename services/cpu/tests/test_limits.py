"""The limits that follow from the table: known answers, their sources, and what stays unknown."""

import itertools
import math

import pytest

from hostbench.host.microarchitecture import (
    ARM,
    CpuIdentity,
    Microarchitecture,
    Unknown,
    table,
)
from hostbench.model.host import Cpu
from hostbench.model.limit import Factor, Limit
from services.cpu.limits import (
    LIBRARY_WORKLOADS,
    library_operations_per_cycle,
    limits,
    operations_per_cycle,
    trial_limits,
)
from services.cpu.sequences import (
    DTYPE_BITS,
    FLOAT_BITS,
    INTEGER_BITS,
    ISAS,
    Kernel,
    Sequence,
    sequence,
    workloads,
)
from services.cpu.tests.identities import (
    HYBRID_FLAGS,
    ICE_LAKE_FLAGS,
    MASKED_GRANITE_RAPIDS,
    SAPPHIRE_RAPIDS_FLAGS,
    SKYLAKE_FLAGS,
    SKYLAKE_SERVER_FLAGS,
    SSE_TO_AVX2,
    ZEN1_FLAGS,
    ZEN2_FLAGS,
    ZEN3_FLAGS,
    ZEN4_FLAGS,
    ZEN5_FLAGS,
    amd,
    arm,
    intel,
    row_of,
)
from tests.each import each
from tests.unit.records import end, host, placement, start

CLOCK_HERTZ = 3.0e9
MIXES = (None, "1:1", "2:1")


def limit(identity: CpuIdentity, workload: str, dtype: str, isa: str, cores: int = 1) -> Limit:
    """`workload` may carry its mix: `fma_add 1:1`."""
    name, _, mix = workload.partition(" ")
    params = {"dtype": dtype, "isa": isa} | ({"mix": mix} if mix else {})
    found = trial_limits(identity, name, params, {"clock_hertz": CLOCK_HERTZ}, cores)
    return found["operations_per_second"]


def per_cycle(identity: CpuIdentity, workload: str, dtype: str, isa: str) -> float | None:
    value = limit(identity, workload, dtype, isa).value
    return None if value is None else value / CLOCK_HERTZ


def operations_source(found: Limit) -> str:
    return next(f.source for f in found.factors if f.name == "operations_per_cycle")


def combinations() -> list[tuple[str, str, str, str | None]]:
    """Every workload, dtype, isa and mix, whether it makes sense or not."""
    return list(itertools.product(sorted(workloads()), DTYPE_BITS, ISAS, MIXES))


each_row = each("row", table().microarchitectures, lambda row: row.name)


KNOWN = [
    # identity, row, {(workload, dtype): operations per cycle for scalar, 128, 256, 512}
    (
        intel(0x3F, SSE_TO_AVX2, "Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz"),
        "haswell",
        {
            ("fma", "fp64"): (4, 8, 16),
            ("fma", "fp32"): (4, 16, 32),
            ("add_sub", "fp64"): (1, 2, 4),
            ("add_sub", "fp32"): (1, 4, 8),
            ("add_sub", "int8"): (4, 32, 64),
            ("add_sub", "int32"): (4, 8, 16),
            ("add_sub", "int64"): (4, None, None),
            ("fma_add 1:1", "fp64"): (3, 6, 12),  # p01 takes both
            ("mul_add", "fp32"): (2, 8, 16),
            ("int_mul", "int32"): (1, 2, 4),
            ("int_mul_add", "int8"): (2, 16, 32),
            ("compare", "int32"): (1 / 0.75, 4, 8),
            ("compare", "fp64"): (None, None, None),
        },
    ),
    (
        intel(0x5E, SKYLAKE_FLAGS),
        "skylake_client",
        {
            ("fma", "fp64"): (4, 8, 16),
            ("add_sub", "fp32"): (2, 8, 16),
            ("add_sub", "int16"): (4, 24, 48),
            ("compare", "int8"): (2, 16 / 0.75, 48),  # with the copy, the front end of 4
            ("compare", "fp64"): (1 / 0.75, 2 / 0.75, 6),
            ("int_mul_add", "int32"): (2, 8, 16),
        },
    ),
    (
        intel(0x55, SKYLAKE_SERVER_FLAGS, "Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz"),
        "skylake_server",
        {
            ("fma", "fp64"): (4, 8, 16, 32),
            ("fma", "fp32"): (4, 16, 32, 64),
            ("add_sub", "fp64"): (2, 4, 8, 16),
            ("add_sub", "int8"): (4, 48, 96, 128),
            ("fma_add 2:1", "fp64"): (10 / 3, 20 / 3, 40 / 3, 80 / 3),
            ("int_mul_add", "int64"): (2, None, None, 8),
        },
    ),
    (
        intel(0x55, SKYLAKE_SERVER_FLAGS, "Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz"),
        "skylake_server",
        {
            ("fma", "fp64"): (4, 8, 16, 16),
            ("add_sub", "fp64"): (2, 4, 8, 8),
            ("add_sub", "int64"): (4, 6, 12, 16),
            ("mul_add", "fp64"): (2, 4, 8, 8),
            ("int_mul_add", "int32"): (2, 8, 16, 16),
        },
    ),
    (
        intel(0x6A, ICE_LAKE_FLAGS, "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz"),
        "ice_lake_server",
        {("fma", "fp64"): (4, 8, 16, 32), ("add_sub", "fp32"): (2, 8, 16, 32)},
    ),
    (
        intel(0xA7, ICE_LAKE_FLAGS, "11th Gen Intel(R) Core(TM) i7-11700K @ 3.60GHz"),
        "ice_lake_client",
        {
            ("fma", "fp64"): (4, 8, 16, 16),
            ("add_sub", "fp64"): (2, 4, 8, 8),
            ("add_sub", "int32"): (4, 12, 24, 32),
        },
    ),
    (
        intel(0x8F, SAPPHIRE_RAPIDS_FLAGS, "Intel(R) Xeon(R) Platinum 8488C"),
        "golden_cove_server",
        {
            ("fma", "fp64"): (4, 8, 16, 32),
            ("fma", "fp32"): (4, 16, 32, 64),
            ("add_sub", "fp64"): (2, 4, 8, 16),
            ("add_sub", "int8"): (5, 48, 96, 128),
            ("add_sub", "int64"): (5, 6, 12, 16),
            ("fma_add 1:1", "fp64"): (4.5, 9, 18, 24),
            ("fma_add 2:1", "fp64"): (5, 10, 20, 8 * 10 / 3),
            ("fma_add 2:1", "fp32"): (5, 20, 40, 16 * 10 / 3),
            ("mul_add", "fp64"): (3, 6, 12, 16),
            ("int_add", "int8"): (5, 48, 96, 128),
            ("int_mul", "int8"): (1, 16 / (5 / 3), 32 / (5 / 3), 32),
            ("int_mul", "int16"): (1, 16, 32, 64),
            ("int_mul", "int32"): (1, 4, 8, 16),
            ("int_mul", "int64"): (1, None, None, 16 / 3),
            ("int_mul_add", "int8"): (2, 16, 32, 51.2),
            ("int_mul_add", "int16"): (2, 24, 48, 64),
            ("int_mul_add", "int32"): (2, None, 16, 64 / 3),
            ("int_mul_add", "int64"): (2, None, None, 8),
            ("compare", "int8"): (2, 24, 48, 64),
            ("compare", "int64"): (2, 2, 4, 8),
            ("compare", "fp32"): (1.5, 6, 12, 16),
            ("compare", "fp64"): (1.5, 3, 6, 8),
            ("dot", "int8"): (None, None, 128, 256),
            ("dot", "int16"): (None, None, 64, 128),
            ("dot", "bf16"): (None, None, None, 32),
            ("dot", "fp16"): (None, None, None, 128),
        },
    ),
    (
        intel(0xB7, HYBRID_FLAGS, core_type="performance"),
        "golden_cove_client",
        {("fma", "fp64"): (4, 8, 16), ("add_sub", "int64"): (5, 6, 12)},
    ),
    (
        intel(0xB7, HYBRID_FLAGS, core_type="efficiency"),
        "gracemont",
        {
            ("fma", "fp64"): (4, 8, 8),
            ("add_sub", "fp32"): (2, 8, 8),
            ("add_sub", "int32"): (4, 12, 12),
        },
    ),
    (
        amd(0x17, 0x01, ZEN1_FLAGS, "AMD EPYC 7571"),
        "zen1",
        {("fma", "fp64"): (4, 8, 8), ("add_sub", "int32"): (4, 12, 12)},
    ),
    (
        amd(0x17, 0x31, ZEN2_FLAGS, "AMD EPYC 7R32"),
        "zen2",
        {("fma", "fp64"): (4, 8, 16), ("add_sub", "int32"): (4, 12, 24)},
    ),
    (
        amd(0x19, 0x01, ZEN3_FLAGS, "AMD EPYC 7763 64-Core Processor"),
        "zen3",
        {("fma", "fp32"): (4, 16, 32), ("add_sub", "int64"): (4, 8, 16)},
    ),
    (
        amd(0x19, 0x11, ZEN4_FLAGS, "AMD EPYC 9R14"),
        "zen4",
        {
            ("fma", "fp64"): (4, 8, 16, 16),
            ("fma", "fp32"): (4, 16, 32, 32),
            ("add_sub", "fp64"): (2, 4, 8, 8),
            ("add_sub", "int8"): (4, 64, 128, 128),
            ("add_sub", "int64"): (4, 8, 16, 16),
            ("fma_add 1:1", "fp64"): (None, None, None, 24),
            ("fma_add 1:1", "fp32"): (None, None, None, 48),
            ("mul_add", "fp64"): (4, 8, 16, 16),
            ("int_mul", "int16"): (1, 16, 32, 32),
            ("int_mul", "int64"): (1, None, None, 8),
            ("int_mul_add", "int32"): (2, 16, 32, 32),
            ("int_mul", "int8"): (1, None, None, 32),
            ("int_mul_add", "int8"): (2, None, None, 51.2),
            ("compare", "int32"): (None, 8, 16, 16),
            ("compare", "int64"): (None, 4, 8, 8),
            ("compare", "fp64"): (2, 4, 8, 8),
            ("dot", "int8"): (None, None, None, 128),
            ("dot", "bf16"): (None, None, None, 64),
        },
    ),
    (
        amd(0x1A, 0x02, ZEN5_FLAGS, "AMD EPYC 9755 128-Core Processor"),
        "zen5",
        {
            ("fma", "fp64"): (4, 8, 16, 32),
            ("add_sub", "fp32"): (2, 8, 16, 32),
            ("add_sub", "int8"): (6, 64, 128, 256),
        },
    ),
    (
        amd(0x1A, 0x24, ZEN5_FLAGS, "AMD Ryzen AI 9 HX 370 w/ Radeon 890M"),
        "zen5_mobile",
        {("fma", "fp64"): (4, 8, 16, 16), ("add_sub", "int8"): (6, 64, 128, 128)},
    ),
    (
        arm(0xD0C),
        "neoverse_n1",
        {
            ("fma", "fp64"): (4, 8),
            ("fma", "fp32"): (4, 16),
            ("add_sub", "fp32"): (2, 8),
            ("add_sub", "int8"): (3, 32),
            ("fma_add 2:1", "fp64"): (10 / 3, 20 / 3),
            ("int_mul", "int16"): (None, 4),
            ("int_mul", "int64"): (1 / 3, None),
            ("int_mul_add", "int8"): (None, None),
            ("compare", "int32"): (1.5, 4),
            ("compare", "fp64"): (1, 2),
            ("dot", "int8"): (None, 64),
        },
    ),
    (
        arm(0xD40),
        "neoverse_v1",
        {
            ("fma", "fp64"): (8, 16),
            ("add_sub", "fp64"): (4, 8),
            ("add_sub", "int64"): (4, 8),
            ("int_mul_add", "int8"): (2, 64),
            ("dot", "bf16"): (None, 64),
        },
    ),
    (
        arm(0xD4F),
        "neoverse_v2",
        {
            ("fma", "fp64"): (8, 16),
            ("fma", "fp32"): (None, 32),
            ("add_sub", "int64"): (6, 8),
            ("add_sub", "int8"): (6, 64),
        },
    ),
    (
        arm(0xD49),
        "neoverse_n2",
        {
            ("fma", "fp64"): (4, 8),
            ("add_sub", "int64"): (4, 4),
            ("int_mul", "int32"): (2, 4),
            ("int_mul_add", "int32"): (2, 8),
        },
    ),
    (arm(0xD49, 0x6D), "neoverse_n2", {("fma", "fp32"): (4, 16)}),
]


class TestKnownAnswers:
    @each(("identity", "name", "answers"), KNOWN, lambda case: case[:2])
    def test_operations_per_cycle(
        self,
        identity: CpuIdentity,
        name: str,
        answers: dict[tuple[str, str], tuple[float | None, ...]],
    ) -> None:
        assert row_of(identity) == name
        isas = (
            ("scalar", "neon")
            if identity.architecture == ARM
            else ("scalar", "sse2", "avx2", "avx512")
        )
        for (workload, dtype), expected in answers.items():
            found = tuple(
                per_cycle(identity, workload, dtype, isa)
                for isa, _ in zip(isas, expected, strict=False)
            )
            assert found == pytest.approx(expected), (workload, dtype)

    def test_matrix_instructions_of_arm(self) -> None:
        assert per_cycle(arm(0xD40), "dot", "int8", "mmla") == 4 * 64
        assert per_cycle(arm(0xD40), "dot", "bf16", "mmla") == 4 * 32

    def test_sve_is_as_wide_as_the_core_has_it(self) -> None:
        neoverse_v1, neoverse_v2 = arm(0xD40), arm(0xD4F)
        assert per_cycle(neoverse_v1, "fma", "fp64", "sve") == 2 * 4 * 2
        assert per_cycle(neoverse_v2, "fma", "fp64", "sve") == 4 * 2 * 2
        assert per_cycle(neoverse_v1, "int_mul_add", "int8", "sve") == 32 * 2
        assert per_cycle(neoverse_v1, "int_mul", "int64", "sve") == 4 / 2
        assert "length of its SVE registers" in (
            limit(arm(0xD0C), "fma", "fp64", "sve").reason or ""
        )

    def test_what_ports_do_not_describe_is_null_with_the_measurement(self) -> None:
        found = limit(amd(0x19, 0x11, ZEN4_FLAGS), "fma_add 1:1", "fp64", "avx2")
        assert found.value is None
        assert found.reason is not None
        assert "0.54 to 0.61 cycles instead of 0.5" in found.reason

    def test_a_width_the_core_lacks_has_a_reason(self) -> None:
        found = limit(intel(0x3F, SSE_TO_AVX2), "fma", "fp64", "avx512")
        assert found.value is None
        assert found.reason == "Intel Haswell has no 512-bit fp_fma of fp64"

    @pytest.mark.parametrize(
        ("dtype", "operations"), [("int8", 2048), ("bf16", 1024), ("fp16", 1024)]
    )
    def test_tiles(self, dtype: str, operations: int) -> None:
        found = limit(MASKED_GRANITE_RAPIDS, "dot", dtype, "amx")
        assert found.value == CLOCK_HERTZ * operations
        assert "1 dot (amx) every 16 cycles" in operations_source(found)

    @each(
        ("model_name", "operations"),
        [
            ("Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz", 32),
            ("Intel(R) Xeon(R) Platinum 9242 CPU @ 2.30GHz", 32),
            ("Intel(R) Xeon(R) Platinum 8380HL CPU @ 2.90GHz", 32),
            ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", 32),
            ("Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz", 32),
            ("Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz", 32),
            ("Intel(R) Xeon(R) Gold 5222 CPU @ 3.80GHz", 32),
            ("Intel(R) Xeon(R) Gold 5318H CPU @ 2.50GHz", 32),
            ("Intel(R) Xeon(R) W-2145 CPU @ 3.70GHz", 32),
            ("Intel(R) Xeon(R) W-3175X CPU @ 3.10GHz", 32),
            ("Intel(R) Core(TM) i7-7800X CPU @ 3.50GHz", 32),
            ("Intel(R) Core(TM) i9-10980XE CPU @ 3.00GHz", 32),
            ("Intel(R) Xeon(R) Gold 5218 CPU @ 2.30GHz", 16),
            ("Intel(R) Xeon(R) Gold 5120 CPU @ 2.20GHz", 16),
            ("Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz", 16),
            ("Intel(R) Xeon(R) Bronze 3104 CPU @ 1.70GHz", 16),
            ("Intel(R) Xeon(R) Bronze 3204 CPU @ 1.90GHz", 16),
            ("Intel(R) Xeon(R) Silver 4215R CPU @ 3.20GHz", None),
            ("Intel(R) Xeon(R) Gold 5220R CPU @ 2.20GHz", None),
            ("Intel(R) Xeon(R) D-2183IT CPU @ 2.20GHz", None),
            ("Intel(R) Xeon(R) CPU @ 2.00GHz", None),
            (None, None),
        ],
    )
    def test_skylake_server_names_its_fma_units(
        self, model_name: str | None, operations: float | None
    ) -> None:
        identity = intel(0x55, SKYLAKE_SERVER_FLAGS, model_name)
        assert per_cycle(identity, "fma", "fp64", "avx512") == operations
        assert per_cycle(identity, "fma", "fp64", "avx2") == 16


class TestEveryCombination:
    @each_row
    def test_it_is_a_sourced_factor_or_a_reason(self, row: Microarchitecture) -> None:
        for workload, dtype, isa, mix in combinations():
            params = {"dtype": dtype, "isa": isa, "mix": mix}
            found = operations_per_cycle(row, Kernel.of(workload, params, row))
            if isinstance(found, Unknown):
                assert found.reason.startswith(row.title)
                assert "None" not in found.reason
            else:
                assert found.value > 0
                assert found.source.startswith(row.title)

    @each_row
    def test_integer_operations_double_as_the_type_halves(self, row: Microarchitecture) -> None:
        for isa in ISAS:
            kernels = [Kernel("add_sub", dtype, isa, row.architecture) for dtype in INTEGER_BITS]
            found = [operations_per_cycle(row, kernel) for kernel in kernels]
            values = [factor.value for factor in found if isinstance(factor, Factor)]
            ratio = 1 if isa == "scalar" else 2
            assert all(wide * ratio == narrow for narrow, wide in itertools.pairwise(values))

    @each_row
    @each("isa", ISAS)
    def test_a_sequence_is_no_faster_than_each_of_its_parts(
        self, row: Microarchitecture, isa: str
    ) -> None:
        """FMA alone against FMA and ADD, a product alone against a product and a sum."""
        for whole, part, ratio in (
            ("int_mul_add", "int_mul", 2),
            ("int_mul_add", "int_add", 2),
            ("fma_add", "fma", 1.5),
            ("compare", "int_add", 1),
        ):
            for dtype in FLOAT_BITS | INTEGER_BITS:
                kernels = [
                    Kernel(name, dtype, isa, row.architecture, "1:1") for name in (whole, part)
                ]
                mixed, alone = (operations_per_cycle(row, kernel) for kernel in kernels)
                if isinstance(mixed, Factor) and isinstance(alone, Factor):
                    assert mixed.value <= alone.value * ratio + 1e-9, (whole, dtype)


class TestSequences:
    @pytest.mark.parametrize("workload", sorted(workloads()))
    def test_every_workload_has_kernels(self, workload: str) -> None:
        found = [
            (isa, dtype)
            for isa, dtype in itertools.product(ISAS, DTYPE_BITS)
            for architecture in ("x86_64", ARM)
            if isinstance(sequence(Kernel(workload, dtype, isa, architecture, "1:1")), Sequence)
        ]
        assert found

    def test_8_bit_vectors_are_multiplied_in_halves_on_x86_only(self) -> None:
        x86 = sequence(Kernel("int_mul", "int8", "avx512", "x86_64"))
        neon = sequence(Kernel("int_mul", "int8", "neon", ARM))
        assert isinstance(x86, Sequence) and isinstance(neon, Sequence)
        assert [(step.instruction, step.count) for step in x86.steps] == [
            ("bitwise", 2),
            ("int_mul", 2),
        ]
        assert [step.instruction for step in neon.steps] == ["int_mul"]

    @each(
        "kernel",
        [
            Kernel("fma", "int8", "avx2", "x86_64"),
            Kernel("fma_add", "fp64", "avx2", "x86_64"),
            Kernel("fma_add", "fp64", "avx2", "x86_64", "best"),
            Kernel("int_add", "fp64", "avx2", "x86_64"),
            Kernel("add_sub", "bf16", "avx2", "x86_64"),
            Kernel("compare", "fp16", "avx2", "x86_64"),
            Kernel("int_mul", "fp32", "avx2", "x86_64"),
            Kernel("int_mul_add", "None", "avx2", "x86_64"),
            Kernel("mul_add", "int16", "avx2", "x86_64"),
            Kernel("fma", "fp64", "neon", "x86_64"),
            Kernel("fma", "fp64", "avx2", ARM),
            Kernel("fma", "fp64", "best", "x86_64"),
            Kernel("fma", "fp64", "amx", "x86_64"),
            Kernel("int_mul", "int8", "mmla", ARM),
            Kernel("fma", "fp64", "sve", ARM),
            Kernel("dot", "int8", "sve", ARM, sve_bits=256),
            Kernel("compare", "int8", "sve", ARM, sve_bits=256),
        ],
    )
    def test_what_no_program_has_is_unknown(self, kernel: Kernel) -> None:
        assert isinstance(sequence(kernel), Unknown)

    @pytest.mark.parametrize(
        ("kernel", "lanes"),
        [
            (Kernel("fma", "fp64", "scalar", "x86_64"), 1),
            (Kernel("fma", "fp64", "avx512", "x86_64"), 8),
            (Kernel("dot", "int8", "avx512", "x86_64"), 64),
            (Kernel("dot", "bf16", "amx", "x86_64"), 16 * 32),
            (Kernel("dot", "int8", "mmla", ARM), 16),
            (Kernel("fma", "fp64", "sve", ARM, sve_bits=256), 4),
        ],
        ids=str,
    )
    def test_lanes(self, kernel: Kernel, lanes: int) -> None:
        assert kernel.lanes == lanes


class TestLibraries:
    """GEMM and LINPACK: what the widest FMA of the CPU could do."""

    @pytest.mark.parametrize("workload", sorted(LIBRARY_WORKLOADS))
    def test_the_widest_fma_counts(self, workload: str) -> None:
        found = trial_limits(
            MASKED_GRANITE_RAPIDS, workload, {"n": 4096}, {"clock_hertz": CLOCK_HERTZ}, 2
        )["operations_per_second"]
        assert found.value == CLOCK_HERTZ * 32 * 2
        assert "the FMA peak of avx512, the widest this CPU has" in operations_source(found)

    def test_fp32_does_twice_as_much(self) -> None:
        params = {"dtype": "fp32", "n": 4096}
        found = trial_limits(
            MASKED_GRANITE_RAPIDS, "gemm", params, {"clock_hertz": CLOCK_HERTZ}, 1
        )["operations_per_second"]
        assert found.value == CLOCK_HERTZ * 64

    @pytest.mark.parametrize(
        ("row", "flags", "operations"),
        [
            ("golden_cove_client", HYBRID_FLAGS, 16),
            ("zen3", ZEN3_FLAGS, 16),
            ("zen4", ZEN4_FLAGS, 16),
            ("neoverse_v1", frozenset({"asimd"}), 16),
        ],
    )
    def test_flags_decide_on_the_width(
        self, row: str, flags: frozenset[str], operations: float
    ) -> None:
        found = library_operations_per_cycle(table().row(row), flags, {})
        assert isinstance(found, Factor)
        assert found.value == operations

    @pytest.mark.parametrize(
        ("row", "flags", "reason"),
        [
            ("golden_cove_client", frozenset({"sse2", "avx2"}), "shows no FMA"),
            ("neoverse_v1", frozenset({"fp"}), "shows no FMA"),
            ("skylake_server", SKYLAKE_SERVER_FLAGS, "one or two 512-bit FMA units"),
        ],
    )
    def test_what_is_not_known_has_a_reason(
        self, row: str, flags: frozenset[str], reason: str
    ) -> None:
        found = library_operations_per_cycle(table().row(row), flags, {})
        assert isinstance(found, Unknown)
        assert reason in found.reason


class TestLimits:
    def test_value_is_the_product_of_sourced_factors(self) -> None:
        zen4 = amd(0x19, 0x11, ZEN4_FLAGS)
        found = limit(zen4, "fma", "fp64", "avx512", cores=4)
        assert [(f.name, f.value, f.unit) for f in found.factors] == [
            ("clock", CLOCK_HERTZ, "Hz"),
            ("operations_per_cycle", 16.0, "operation/cycle"),
            ("cores", 4.0, "core"),
        ]
        assert found.value == math.prod(factor.value for factor in found.factors)
        assert (found.unit, found.tolerance, found.reason) == ("operation/s", 0.02, None)
        clock, operations, cores = (factor.source for factor in found.factors)
        assert "dependent-add chain" in clock
        assert "CPUID says AuthenticAMD family 25 model 17" in operations
        assert "1 fp_fma (avx512) a cycle × 8 lanes of fp64 × 2 per lane" in operations
        assert "StormPeak" in operations
        assert cores == "distinct cores used"

    def test_a_mix_names_its_ports_and_what_holds_it_back(self) -> None:
        found = limit(MASKED_GRANITE_RAPIDS, "int_mul_add", "int32", "avx512")
        source = operations_source(found)
        assert (
            "1 int_mul (2 µops on p05) + 1 int_add (1 µop on p05) with avx512 every 1.5 cycles, "
            "as the 2 ports p05 have 3 cycles of work: × 16 lanes of int32 × 2 per lane"
        ) in source
        assert "LLVM X86SchedSapphireRapids.td" in source

    def test_each_source_is_named_once(self) -> None:
        found = limit(MASKED_GRANITE_RAPIDS, "int_mul_add", "int8", "sse2")
        assert operations_source(found).count("LLVM X86SchedSapphireRapids.td") == 1

    def test_masked_model_reaches_the_source_of_the_limit(self) -> None:
        found = limit(MASKED_GRANITE_RAPIDS, "fma", "fp64", "avx512", cores=2)
        assert found.value == CLOCK_HERTZ * 32 * 2
        assert "model 167" in found.factors[1].source
        assert "OSACA spr.yml" in found.factors[1].source

    def test_an_unknown_cpu_is_null_with_a_reason(self) -> None:
        found = limit(intel(0x55, ICE_LAKE_FLAGS), "fma", "fp64", "avx2")
        assert found.value is None
        assert found.factors == ()
        assert found.reason is not None
        assert found.reason.startswith("unknown micro-architecture: CPUID says GenuineIntel")

    @pytest.mark.parametrize("clock", [None, 0.0, -1.0], ids=repr)
    def test_no_clock_no_limit(self, clock: float | None) -> None:
        found = trial_limits(
            MASKED_GRANITE_RAPIDS,
            "fma",
            {"dtype": "fp64", "isa": "avx2"},
            {"clock_hertz": clock},
            1,
        )["operations_per_second"]
        assert found.value is None
        assert found.reason == "the trial measured no clock (clock_hertz)"

    @pytest.mark.parametrize(
        "params",
        [
            {},
            {"dtype": "fp64"},
            {"isa": "avx2"},
            {"dtype": "fp64", "isa": "best"},
            {"dtype": "fp64", "isa": "neon"},
            {"dtype": "int8", "isa": "avx2"},
            {"dtype": None, "isa": None},
        ],
        ids=repr,
    )
    def test_parameters_without_an_instruction_have_a_reason(
        self, params: dict[str, object]
    ) -> None:
        found = trial_limits(MASKED_GRANITE_RAPIDS, "fma", params, {"clock_hertz": CLOCK_HERTZ}, 1)[
            "operations_per_second"
        ]
        assert found.value is None
        assert found.reason

    def test_the_clock_has_no_limit_and_says_why(self) -> None:
        found = trial_limits(MASKED_GRANITE_RAPIDS, "clock", {}, {"clock_hertz": CLOCK_HERTZ}, 1)
        assert found.keys() == {"clock_hertz"}
        assert found["clock_hertz"].value is None
        assert found["clock_hertz"].unit == "Hz"
        assert "no sound source" in (found["clock_hertz"].reason or "")

    def test_a_workload_without_limits_gives_none(self) -> None:
        assert trial_limits(MASKED_GRANITE_RAPIDS, "hash_map", {}, {}, 1) == {}

    def test_limits_of_a_trial_on_a_host(self) -> None:
        """The cores of the placement count, and the kind of those that were used."""
        hybrid = host(
            cpu=Cpu(
                architecture="x86_64",
                vendor="GenuineIntel",
                family=6,
                model=0xB7,
                flags=tuple(HYBRID_FLAGS),
                performance_cpus=(0, 1),
                efficiency_cpus=(2, 3),
            )
        )
        trial = start(params={"dtype": "fp64", "isa": "avx2"}, placement=placement(cpus=(2, 3)))
        found = limits(hybrid, trial, end())["operations_per_second"]
        assert found.value == CLOCK_HERTZ * 8 * 2
        assert "Gracemont" in operations_source(found)
        assert found.factors[-1].source == "distinct cores used"
        both = placement(cpus=(0, 1), cores=1, smt_shared=True)
        trial = trial.model_copy(update={"placement": both})
        one_core = limits(hybrid, trial, end())["operations_per_second"]
        assert one_core.value == CLOCK_HERTZ * 16
        assert "shared by 2 threads" in one_core.factors[-1].source
