"""CPUs as they present themselves, for the tests of the limits."""

from hostbench.host.microarchitecture import (
    ARM,
    X86,
    CoreType,
    CpuIdentity,
    Identification,
    Unknown,
    identify,
)

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


def row_of(identity: CpuIdentity) -> str:
    found = identify(identity)
    assert isinstance(found, Identification), found
    return found.microarchitecture.name


def reason_of(identity: CpuIdentity) -> str:
    found = identify(identity)
    assert isinstance(found, Unknown), found
    return found.reason
