"""The table of micro-architectures and the limits that follow from it."""

import itertools
import math
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from hostbench.models.host import Cpu
from hostbench.models.limit import Factor, Limit
from services.cpu import limits as cpu_limits
from services.cpu.limits import (
    ARM,
    DTYPE_BITS,
    FLOAT_BITS,
    INTEGER_BITS,
    ISAS,
    OTHERS,
    TABLE_PATH,
    WORKLOADS,
    X86,
    CoreType,
    CpuIdentity,
    Identification,
    Microarchitecture,
    Throughput,
    Unknown,
    identify,
    limits,
    operations_per_cycle,
    table,
)

CLOCK_HERTZ = 3.0e9

SSE_TO_AVX2 = frozenset({"fpu", "sse2", "avx", "fma", "avx2", "bmi2"})
BROADWELL_FLAGS = SSE_TO_AVX2 | {"adx", "rdseed"}
SKYLAKE_FLAGS = BROADWELL_FLAGS | {"clflushopt", "xsavec"}
SKYLAKE_SERVER_FLAGS = SKYLAKE_FLAGS | {"clwb", "avx512f", "avx512bw", "avx512dq", "avx512vl"}
ICE_LAKE_FLAGS = SKYLAKE_SERVER_FLAGS | {
    *("avx512vbmi", "avx512_vbmi2", "avx512_vnni", "gfni", "vaes", "sha_ni", "rdpid")
}
SAPPHIRE_RAPIDS_FLAGS = ICE_LAKE_FLAGS | {
    *("avx512_bf16", "avx512_fp16", "avx_vnni", "serialize", "amx_tile", "amx_int8", "amx_bf16")
}
HYBRID_FLAGS = SKYLAKE_FLAGS | {"gfni", "vaes", "sha_ni", "avx_vnni", "serialize"}
ZEN1_FLAGS = SSE_TO_AVX2 | {"adx", "rdseed", "clflushopt", "sha_ni", "sse4a"}
ZEN2_FLAGS = ZEN1_FLAGS | {"clwb", "rdpid", "wbnoinvd"}
ZEN3_FLAGS = ZEN2_FLAGS | {"vaes", "vpclmulqdq", "pku"}
ZEN4_FLAGS = ZEN3_FLAGS | {"avx512f", "avx512bw", "avx512vl", "avx512_bf16", "gfni"}
ZEN5_FLAGS = ZEN4_FLAGS | {"avx_vnni", "avx512_vp2intersect", "movdiri"}

# The virtual machine on which a Granite Rapids was seen under the model number of Rocket Lake.
MASKED_GRANITE_RAPIDS = CpuIdentity(
    architecture=X86,
    vendor="GenuineIntel",
    family=6,
    model=167,
    stepping=1,
    flags=SAPPHIRE_RAPIDS_FLAGS | {"hypervisor"},
    model_name="Intel(R) Xeon(R) Processor",
)

WIDTHS = {"scalar": "scalar", 128: "sse2", 256: "avx2", 512: "avx512"}


def intel(
    model: int,
    flags: frozenset[str],
    model_name: str | None = None,
    core_type: CoreType | None = None,
) -> CpuIdentity:
    return CpuIdentity(X86, "GenuineIntel", 6, model, 0, flags, model_name, core_type)


def amd(family: int, model: int, flags: frozenset[str], name: str | None = None) -> CpuIdentity:
    return CpuIdentity(X86, "AuthenticAMD", family, model, 0, flags, name)


def arm(part: int, implementer: int = 0x41) -> CpuIdentity:
    return CpuIdentity(ARM, implementer, None, part, None, frozenset({"fp", "asimd"}))


def limit(identity: CpuIdentity, workload: str, dtype: str, isa: str, cores: object = 1) -> Limit:
    found = limits(
        identity,
        workload,
        {"dtype": dtype, "isa": isa},
        {"clock_hertz": CLOCK_HERTZ},
        {"cores": cores},
    )
    return found["operations_per_second"]


def per_cycle(identity: CpuIdentity, workload: str, dtype: str, isa: str) -> float | None:
    value = limit(identity, workload, dtype, isa).value
    return None if value is None else value / CLOCK_HERTZ


def row_of(identity: CpuIdentity) -> str:
    found = identify(identity)
    assert isinstance(found, Identification), found
    return found.microarchitecture.name


def reason_of(identity: CpuIdentity) -> str:
    found = identify(identity)
    assert isinstance(found, Unknown), found
    return found.reason


def figures(throughput: Throughput) -> list[float]:
    cells = [
        figure
        for cell in throughput.per_cycle.values()
        for figure in (cell.values() if isinstance(cell, dict) else [cell])
    ]
    return [figure for figure in cells if figure is not None]


def instructions_of(row: Microarchitecture) -> list[dict[str, Throughput]]:
    return [row.instructions, *(entry.instructions for entry in row.by_model_name)]


def all_throughputs() -> list[Any]:
    return [
        pytest.param(row, name, throughput, id=f"{row.name}-{name}-{number}")
        for row in table().microarchitectures
        for number, instructions in enumerate(instructions_of(row))
        for name, throughput in instructions.items()
    ]


each_row = pytest.mark.parametrize("row", table().microarchitectures, ids=lambda row: row.name)


class TestTable:
    @pytest.mark.parametrize(("row", "name", "throughput"), all_throughputs())
    def test_every_figure_is_sane_and_has_a_source(
        self, row: Microarchitecture, name: str, throughput: Throughput
    ) -> None:
        assert name in {"fp_fma", "fp_add", "int_add"}
        assert throughput.sources
        assert all(len(source) > 10 for source in throughput.sources)
        for figure in figures(throughput):
            # Halves: an instruction of double width takes two of an odd number of pipes.
            assert 1 <= figure <= 8, (row.name, figure)
            assert (2 * figure).is_integer()

    @pytest.mark.parametrize(("row", "name", "throughput"), all_throughputs())
    def test_what_is_not_known_says_why(
        self, row: Microarchitecture, name: str, throughput: Throughput
    ) -> None:
        has_null = any(
            None in (cell.values() if isinstance(cell, dict) else [cell])
            for cell in throughput.per_cycle.values()
        )
        assert has_null == (throughput.unknown is not None), (row.name, name)

    @pytest.mark.parametrize(("row", "name", "throughput"), all_throughputs())
    def test_a_cell_that_differs_by_dtype_covers_every_dtype(
        self, row: Microarchitecture, name: str, throughput: Throughput
    ) -> None:
        for cell in throughput.per_cycle.values():
            if isinstance(cell, dict):
                assert OTHERS in cell, (row.name, name)
                assert cell.keys() - {OTHERS} <= DTYPE_BITS.keys()

    @each_row
    def test_a_wider_instruction_never_does_less_work(self, row: Microarchitecture) -> None:
        for throughput in row.instructions.values():
            for dtype in DTYPE_BITS:
                work = [
                    rate * width
                    for width in (128, 256, 512)
                    if width in throughput.per_cycle
                    and (rate := throughput.rate(width, dtype)) is not None
                ]
                assert work == sorted(work)

    @each_row
    def test_every_row_has_every_class_and_the_widths_of_its_architecture(
        self, row: Microarchitecture
    ) -> None:
        smallest = {"scalar", 128} if row.architecture == ARM else {"scalar", 128, 256}
        for name in ("fp_fma", "fp_add", "int_add"):
            assert smallest <= row.instructions[name].per_cycle.keys()
        widths = {frozenset(entry.per_cycle) for entry in row.instructions.values()}
        assert len(widths) == 1

    @each_row
    def test_refinements_only_replace_cells_that_exist(self, row: Microarchitecture) -> None:
        for refinement in row.by_model_name:
            for name, entry in refinement.instructions.items():
                assert entry.per_cycle.keys() <= row.instructions[name].per_cycle.keys()

    @each_row
    def test_flags_do_not_contradict_themselves(self, row: Microarchitecture) -> None:
        assert not row.requires & row.excludes
        if 512 not in row.instructions["fp_fma"].per_cycle and row.architecture == X86:
            assert "avx512f" in row.excludes

    def test_no_cpu_is_in_two_rows(self) -> None:
        seen: dict[tuple[object, ...], str] = {}
        for row in table().microarchitectures:
            for match in row.match:
                for model in match.models:
                    first, last = (model, model) if isinstance(model, int) else model
                    assert first <= last
                    for number in range(first, last + 1):
                        key = (match.vendor, match.family, number, match.core_type)
                        assert key not in seen, (key, row.name, seen[key])
                        seen[key] = row.name

    def test_every_source_is_used_and_every_rule_names_a_row(self) -> None:
        raw = yaml.safe_load(TABLE_PATH.read_text(encoding="utf-8"))
        texts = {source for row in table().microarchitectures for source in sources_of(row)}
        assert set(raw["sources"].values()) == texts
        for rule in table().feature_rules:
            row = table().row(rule.microarchitecture)
            assert row.requires <= rule.requires | {"avx512f"}
            assert not row.excludes & rule.requires

    def test_a_misspelt_key_is_an_error(self) -> None:
        with pytest.raises(ValidationError, match="per_cycles"):
            Throughput.model_validate({"per_cycles": {}, "per_cycle": {}, "sources": ()})

    @each_row
    def test_integer_operations_double_as_the_type_halves(self, row: Microarchitecture) -> None:
        for isa in ISAS:
            found = [operations_per_cycle(row, "add_sub", dtype, isa) for dtype in INTEGER_BITS]
            values = [factor.value for factor in found if isinstance(factor, Factor)]
            ratio = 1 if isa == "scalar" else 2
            assert all(wide * ratio == narrow for narrow, wide in itertools.pairwise(values))

    @each_row
    def test_every_combination_is_a_sourced_factor_or_a_reason(
        self, row: Microarchitecture
    ) -> None:
        for workload, dtype, isa in itertools.product(WORKLOADS, DTYPE_BITS, ISAS):
            found = operations_per_cycle(row, workload, dtype, isa)
            if isinstance(found, Unknown):
                assert found.reason
                assert "None" not in found.reason
            else:
                assert found.value > 0
                assert found.source.startswith(row.title)


def sources_of(row: Microarchitecture) -> set[str]:
    entries = [entry for part in instructions_of(row) for entry in part.values()]
    return {source for entry in entries for source in entry.sources}


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
        },
    ),
    (
        intel(0x5E, SKYLAKE_FLAGS),
        "skylake_client",
        {
            ("fma", "fp64"): (4, 8, 16),
            ("add_sub", "fp32"): (2, 8, 16),
            ("add_sub", "int16"): (4, 24, 48),
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
        },
    ),
    (
        intel(0x55, SKYLAKE_SERVER_FLAGS, "Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz"),
        "skylake_server",
        {
            ("fma", "fp64"): (4, 8, 16, 16),
            ("add_sub", "fp64"): (2, 4, 8, 8),
            ("add_sub", "int64"): (4, 6, 12, 16),
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
        },
    ),
    (
        arm(0xD40),
        "neoverse_v1",
        {("fma", "fp64"): (8, 16), ("add_sub", "fp64"): (4, 8), ("add_sub", "int64"): (4, 8)},
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
    (arm(0xD49), "neoverse_n2", {("fma", "fp64"): (4, 8), ("add_sub", "int64"): (4, 4)}),
    (arm(0xD49, 0x6D), "neoverse_n2", {("fma", "fp32"): (4, 16)}),
]


class TestKnownAnswers:
    @pytest.mark.parametrize(
        ("identity", "name", "answers"),
        KNOWN,
        ids=[f"{name}-{number}" for number, (_, name, _) in enumerate(KNOWN)],
    )
    def test_operations_per_cycle(
        self,
        identity: CpuIdentity,
        name: str,
        answers: dict[tuple[str, str], tuple[float | None, ...]],
    ) -> None:
        assert row_of(identity) == name
        isas = ("scalar", "neon") if identity.architecture == ARM else tuple(WIDTHS.values())
        for (workload, dtype), expected in answers.items():
            found = tuple(
                per_cycle(identity, workload, dtype, isa)
                for isa, _ in zip(isas, expected, strict=False)
            )
            assert found == expected, (workload, dtype)

    def test_a_width_the_core_lacks_has_a_reason(self) -> None:
        found = limit(intel(0x3F, SSE_TO_AVX2), "fma", "fp64", "avx512")
        assert found.value is None
        assert found.reason == "Intel Haswell has no 512-bit fp_fma"


class TestIdentify:
    def test_masked_model_falls_back_to_what_the_flags_prove(self) -> None:
        found = identify(MASKED_GRANITE_RAPIDS)
        assert isinstance(found, Identification)
        assert found.microarchitecture.name == "golden_cove_server"
        assert "model 167" in found.how
        assert "Rocket Lake" in found.how
        assert "amx_tile" in found.how
        assert "AMX and AVX512_FP16" in found.how

    def test_masked_model_reaches_the_source_of_the_limit(self) -> None:
        found = limit(MASKED_GRANITE_RAPIDS, "fma", "fp64", "avx512", cores=2)
        assert found.value == CLOCK_HERTZ * 32 * 2
        assert "model 167" in found.factors[1].source
        assert "OSACA spr.yml" in found.factors[1].source

    def test_contradiction_that_no_rule_decides_is_null(self) -> None:
        identity = intel(0x55, ICE_LAKE_FLAGS)
        assert "has avx512_vbmi2, avx512vbmi, gfni, sha_ni, vaes" in reason_of(identity)
        found = limit(identity, "fma", "fp64", "avx2")
        assert found.value is None
        assert found.reason is not None
        assert found.reason.startswith("unknown micro-architecture: CPUID says GenuineIntel")

    def test_a_missing_flag_is_a_contradiction_too(self) -> None:
        assert "lacks avx512f" in reason_of(intel(0x55, SKYLAKE_FLAGS))

    @pytest.mark.parametrize(
        ("identity", "name"),
        [
            (amd(0x19, 0x01, ZEN4_FLAGS), "zen4"),
            (amd(0x19, 0xF0, ZEN4_FLAGS), "zen4"),
            (amd(0x19, 0xF0, ZEN3_FLAGS), "zen3"),
            (amd(0x19, 0x11, ZEN3_FLAGS), "zen3"),
            (intel(0xF0, SAPPHIRE_RAPIDS_FLAGS), "golden_cove_server"),
        ],
    )
    def test_feature_rules(self, identity: CpuIdentity, name: str) -> None:
        assert row_of(identity) == name

    @pytest.mark.parametrize(
        "identity",
        [
            amd(0x19, 0x01, ZEN5_FLAGS),
            amd(0x1A, 0x50, ZEN5_FLAGS),
            amd(0x17, 0x01, ZEN3_FLAGS),
            intel(0xF0, ICE_LAKE_FLAGS),
            intel(0x5E, frozenset()),
            arm(0xFFF),
            CpuIdentity(X86, None, None, None, None, frozenset()),
            CpuIdentity("riscv64", "sifive", None, 1, None, frozenset()),
            CpuIdentity(ARM, "GenuineIntel", 6, 0x5E, 0, SKYLAKE_FLAGS),
        ],
    )
    def test_unknown_is_null_with_a_reason(self, identity: CpuIdentity) -> None:
        assert reason_of(identity)
        found = limit(identity, "fma", "fp64", "scalar")
        assert found.value is None
        assert found.reason
        assert found.factors == ()

    @pytest.mark.parametrize(
        "identity",
        [
            intel(0x3C, SSE_TO_AVX2, "Intel Core Processor (Haswell, no TSX)"),
            intel(0x55, SKYLAKE_SERVER_FLAGS, "Intel Xeon Processor (Skylake, IBRS)"),
            amd(0x19, 0x11, ZEN4_FLAGS, "AMD EPYC-Genoa Processor"),
            amd(0x17, 0x01, ZEN1_FLAGS, "AMD EPYC Processor (with IBPB)"),
        ],
    )
    def test_a_compatibility_model_proves_nothing(self, identity: CpuIdentity) -> None:
        assert "compatibility model" in reason_of(identity)

    def test_amx_is_proof_even_under_a_compatibility_model(self) -> None:
        name = "Intel Xeon Processor (SapphireRapids)"
        assert row_of(intel(0x8F, SAPPHIRE_RAPIDS_FLAGS, name)) == "golden_cove_server"

    @pytest.mark.parametrize(
        ("core_type", "words"),
        [(None, "core_type is not known"), ("mixed", "are of both kinds")],
    )
    def test_a_hybrid_processor_needs_its_kind_of_core(
        self, core_type: CoreType | None, words: str
    ) -> None:
        assert words in reason_of(intel(0x97, HYBRID_FLAGS, core_type=core_type))

    def test_arrow_lake_h_has_two_kinds_of_efficiency_cores(self) -> None:
        assert row_of(intel(0xC5, HYBRID_FLAGS, core_type="performance")) == "lion_cove"
        assert "not in the table" in reason_of(intel(0xC5, HYBRID_FLAGS, core_type="efficiency"))

    @pytest.mark.parametrize(
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

    def test_inventory(self) -> None:
        x86 = Cpu(architecture=X86, vendor="AuthenticAMD", family=25, model=17, stepping=1)
        assert CpuIdentity.from_inventory(x86).vendor == "AuthenticAMD"
        assert str(CpuIdentity.from_inventory(x86)) == "AuthenticAMD family 25 model 17"
        graviton = Cpu(architecture=ARM, implementer=0x41, part=0xD40, flags=("asimd",))
        assert row_of(CpuIdentity.from_inventory(graviton)) == "neoverse_v1"
        assert str(CpuIdentity.from_inventory(graviton)) == "implementer 0x41 part 0xd40"


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

    @pytest.mark.parametrize("clock", [None, 0, -1.0, math.nan, math.inf, "3e9", True], ids=repr)
    def test_no_clock_no_limit(self, clock: object) -> None:
        found = limits(
            MASKED_GRANITE_RAPIDS,
            "fma",
            {"dtype": "fp64", "isa": "avx2"},
            {"clock_hertz": clock},
            {"cores": 1},
        )["operations_per_second"]
        assert found.value is None
        assert found.reason == "the trial measured no clock (clock_hertz)"

    @pytest.mark.parametrize("cores", [None, 0, "2", False], ids=repr)
    def test_no_cores_no_limit(self, cores: object) -> None:
        found = limit(MASKED_GRANITE_RAPIDS, "fma", "fp64", "avx2", cores)
        assert found.value is None
        assert "placement.cores" in (found.reason or "")

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
        found = limits(
            MASKED_GRANITE_RAPIDS, "fma", params, {"clock_hertz": CLOCK_HERTZ}, {"cores": 1}
        )["operations_per_second"]
        assert found.value is None
        assert found.reason

    def test_empty_metrics_and_placement(self) -> None:
        found = limits(MASKED_GRANITE_RAPIDS, "add_sub", {}, {}, {})
        assert found["operations_per_second"].value is None

    def test_the_clock_has_no_limit_and_says_why(self) -> None:
        found = limits(MASKED_GRANITE_RAPIDS, "clock", {}, {"clock_hertz": CLOCK_HERTZ}, {})
        assert found.keys() == {"clock_hertz"}
        assert found["clock_hertz"].value is None
        assert found["clock_hertz"].unit == "Hz"
        assert "no sound source" in (found["clock_hertz"].reason or "")

    def test_a_workload_without_limits_gives_none(self) -> None:
        assert limits(MASKED_GRANITE_RAPIDS, "hash_map", {}, {}, {}) == {}

    def test_every_dtype_of_every_workload_has_an_instruction_class(self) -> None:
        for work in WORKLOADS.values():
            assert work.instructions.keys() <= DTYPE_BITS.keys()
        assert WORKLOADS["fma"].instructions.keys() == FLOAT_BITS.keys()
        assert WORKLOADS["add_sub"].instructions.keys() == DTYPE_BITS.keys()

    def test_the_table_is_read_once(self) -> None:
        assert cpu_limits.table() is cpu_limits.table()
