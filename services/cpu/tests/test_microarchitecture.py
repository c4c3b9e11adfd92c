"""Which micro-architecture a CPU is found to be, and when that stays unknown."""

import pytest

from hostbench.host.microarchitecture import (
    ARM,
    X86,
    CoreType,
    CpuIdentity,
    Identification,
    core_type,
    identify,
)
from hostbench.model.host import Cpu, Virtualisation
from services.cpu.tests.identities import (
    HYBRID_FLAGS,
    ICE_LAKE_FLAGS,
    MASKED_GRANITE_RAPIDS,
    SAPPHIRE_RAPIDS_FLAGS,
    SKYLAKE_FLAGS,
    SKYLAKE_SERVER_FLAGS,
    SSE_TO_AVX2,
    ZEN1_FLAGS,
    ZEN3_FLAGS,
    ZEN4_FLAGS,
    ZEN5_FLAGS,
    amd,
    arm,
    intel,
    reason_of,
    row_of,
)
from tests.unit.records import host


class TestIdentify:
    def test_masked_model_falls_back_to_what_the_flags_prove(self) -> None:
        found = identify(MASKED_GRANITE_RAPIDS)
        assert isinstance(found, Identification)
        assert found.microarchitecture.name == "golden_cove_server"
        assert "model 167" in found.how
        assert "Rocket Lake" in found.how
        assert "amx_tile" in found.how
        assert "AMX and AVX512_FP16" in found.how

    def test_contradiction_that_no_rule_decides_is_null(self) -> None:
        identity = intel(0x55, ICE_LAKE_FLAGS)
        assert "has avx512_vbmi2, avx512vbmi, gfni, sha_ni, vaes" in reason_of(identity)
        assert reason_of(identity).startswith("unknown micro-architecture: CPUID says GenuineIntel")

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
    def test_unknown_has_a_reason(self, identity: CpuIdentity) -> None:
        assert reason_of(identity).startswith("unknown micro-architecture: ")

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

    def test_inventory(self) -> None:
        x86 = Cpu(architecture=X86, vendor="AuthenticAMD", family=25, model=17, stepping=1)
        assert CpuIdentity.from_inventory(x86).vendor == "AuthenticAMD"
        assert str(CpuIdentity.from_inventory(x86)) == "AuthenticAMD family 25 model 17"
        graviton = Cpu(architecture=ARM, implementer=0x41, part=0xD40, flags=("asimd",))
        assert row_of(CpuIdentity.from_inventory(graviton)) == "neoverse_v1"
        assert str(CpuIdentity.from_inventory(graviton)) == "implementer 0x41 part 0xd40"


HYBRID = {"performance_cpus": (0, 1), "efficiency_cpus": (2, 3)}


@pytest.mark.parametrize(
    ("cpu", "hypervisor", "used", "kind"),
    [
        ({}, False, (0,), "performance"),
        ({}, True, (0,), None),
        (HYBRID, False, (0, 1), "performance"),
        (HYBRID, False, (2,), "efficiency"),
        (HYBRID, True, (1, 2), "mixed"),
    ],
)
def test_kind_of_the_cores_used(
    cpu: dict[str, tuple[int, ...]], hypervisor: bool, used: tuple[int, ...], kind: str | None
) -> None:
    one = host(
        cpu=Cpu(architecture="x86_64", **cpu),
        virtualisation=Virtualisation(hypervisor=hypervisor),
    )
    assert core_type(one, used) == kind
    assert CpuIdentity.of(one, used).core_type == kind
