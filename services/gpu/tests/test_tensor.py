"""The tensor workload: what its kernels must leave, against a second account of the instructions,
and the workload itself on a stand-in for the driver."""

import ctypes
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from services.gpu.tests.compiler import compiler
from services.gpu.tests.cuda_stub import FLAGS, GPU, INCLUDES, environment
from services.gpu.tests.program import call, measure, on_pocl
from tests.benchmark import UNSUPPORTED, WRONG, refused

# Fields and fractions of the formats; the places of element.h's enumeration.
FORMATS = {"fp16": (0, 2, 5, 10), "bf16": (1, 2, 8, 7), "tf32": (2, 4, 8, 10), "fp8": (3, 1, 4, 3)}
FP32, FP64 = 5, 6
RANDOM, EXACT = 0, 1
GROUPS = 3
MMA, WGMMA, TCGEN05 = range(3)

# Of each capability: which types it has, by which instruction.
CAPABILITIES = {
    "7.0": {"fp16": "mma m8n8k4"},
    "7.5": {"fp16": "mma m16n8k8", "int8": "mma m8n8k16"},
    "8.0": {
        "fp16": "mma m16n8k16",
        "bf16": "mma m16n8k16",
        "tf32": "mma m16n8k8",
        "int8": "mma m16n8k32",
        "fp64": "mma m8n8k4",
    },
    "8.9": {"fp8": "mma m16n8k32", "bf16": "mma m16n8k16"},
    "9.0": {
        "fp16": "wgmma m64n256k16",
        "bf16": "wgmma m64n256k16",
        "tf32": "wgmma m64n256k8",
        "fp8": "wgmma m64n256k32",
        "int8": "wgmma m64n256k32",
        "fp64": "mma m16n8k16",
    },
    "10.0": {
        "fp16": "tcgen05 m128n256k16",
        "tf32": "tcgen05 m128n256k8",
        "fp8": "tcgen05 m128n256k32",
        "int8": "tcgen05 m128n256k32",
    },
    "10.3": {"bf16": "tcgen05 m128n256k16", "fp64": "mma m16n8k16"},
    "12.0": {"fp8": "mma m16n8k32", "fp64": "mma m16n8k16"},
    "13.0": {"bf16": "mma m16n8k16"},
}
CASES = [
    (capability, dtype, shape)
    for capability, types in CAPABILITIES.items()
    for dtype, shape in types.items()
]
MISSING = [("7.0", "bf16"), ("7.5", "tf32"), ("8.0", "fp8"), ("8.6", "fp8")]
MOMENT = ("--duration-s=0.05", "--warmup-s=0")


class Kernel(ctypes.Structure):
    """struct tensor_kernel."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("instruction", ctypes.c_int),
        *((name, ctypes.c_uint) for name in ("m", "n", "k", "products", "tiles_m", "tiles_n")),
        *((name, ctypes.c_uint) for name in ("steps", "crew", "threads", "groups_per_unit")),
        ("shared_bytes", ctypes.c_uint),
    )


class Expected(ctypes.Structure):
    """struct tensor_expected."""

    _fields_ = (
        ("kernel", ctypes.POINTER(Kernel)),
        ("values", ctypes.POINTER(ctypes.c_double)),
        ("tolerance", ctypes.c_double),
    )


class Mismatch(ctypes.Structure):
    """struct tensor_mismatch."""

    _fields_ = (
        ("group", ctypes.c_uint),
        ("thread", ctypes.c_uint),
        ("value", ctypes.c_uint),
        ("what", ctypes.c_char * 160),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made = tmp_path_factory.mktemp("tensor") / "tensor.so"
    sources = [
        GPU / "tests" / "stub" / "tensor_emulation.c",
        *(GPU / "bench" / f"{name}.c" for name in ("tensor_shapes", "tensor_check")),
        *(GPU / "bench" / f"{name}.c" for name in ("element", "random")),
    ]
    includes = [f"-I{include}" for include in INCLUDES]
    subprocess.run(
        [
            compiler(),
            *FLAGS,
            "-fPIC",
            "-shared",
            *includes,
            "-o",
            str(made),
            *map(str, sources),
            "-lm",
        ],
        check=True,
    )
    library = ctypes.CDLL(str(made))
    for name in ("tensor_operand_bytes", "tensor_a_offset", "tensor_b_offset"):
        getattr(library, name).restype = ctypes.c_size_t
    library.tensor_operations.restype = ctypes.c_double
    library.tensor_check.restype = ctypes.c_bool
    library.tensor_expect.restype = ctypes.c_bool
    library.element_decode.restype = ctypes.c_double
    return library


def kernels(library: ctypes.CDLL) -> Iterator[Kernel]:
    at = 0
    while True:
        row = Kernel.in_dll(library, "tensor_kernels")
        found = Kernel.from_address(ctypes.addressof(row) + at * ctypes.sizeof(Kernel))
        if not found.name:
            return
        yield found
        at += 1


NAMES = [
    *(f"tensor_tcgen05_m128n256_{t}" for t in ("fp16", "bf16", "tf32", "fp8", "int8")),
    *(f"tensor_wgmma_m64n256_{t}" for t in ("fp16", "bf16", "tf32", "fp8", "int8")),
    *(f"tensor_mma_m16n8k16_{t}" for t in ("fp16", "bf16", "fp64")),
    "tensor_mma_m16n8k8_fp16",
    "tensor_mma_m16n8k8_tf32",
    "tensor_mma_m16n8k32_fp8",
    "tensor_mma_m16n8k32_int8",
    "tensor_mma_m8n8k16_int8",
    "tensor_mma_m8n8k4_fp16",
    "tensor_mma_m8n8k4_fp64",
]


def test_every_kernel_is_tried(library: ctypes.CDLL) -> None:
    assert sorted(NAMES) == sorted(kernel.name.decode() for kernel in kernels(library))


@dataclass
class Launched:
    """A kernel with its buffers, of a few groups."""

    library: ctypes.CDLL
    kernel: Kernel
    operands: "np.ndarray[tuple[int], np.dtype[np.uint8]]"
    results: "np.ndarray[tuple[int], np.dtype[np.uint8]]"
    hashes: "np.ndarray[tuple[int], np.dtype[np.uint32]]"
    expected: Expected
    which: int
    passes: int = 0

    def launch(self, passes: int, rounds: int = 0) -> None:
        """Add to the hashes, as a launch on a device."""
        rounds = rounds or self.library.tensor_rounds(ctypes.byref(self.kernel), self.which)
        record = np.zeros(4, np.uint64)
        holders: list[ctypes.c_void_p | ctypes.c_uint32] = [
            ctypes.c_void_p(self.operands.ctypes.data),
            ctypes.c_void_p(self.results.ctypes.data),
            ctypes.c_void_p(self.hashes.ctypes.data),
            ctypes.c_uint32(passes),
            ctypes.c_uint32(rounds),
            ctypes.c_void_p(record.ctypes.data),
            ctypes.c_uint32(0),
        ]
        array = (ctypes.c_void_p * len(holders))(
            *(ctypes.cast(ctypes.pointer(holder), ctypes.c_void_p) for holder in holders)
        )
        assert self.library.tensor_emulate(self.kernel.name, GROUPS, array) == 0
        self.passes += passes

    def wrong(self, passes: int | None = None) -> Mismatch | None:
        """What the check finds."""
        first = Mismatch()
        right = self.library.tensor_check(
            ctypes.byref(self.expected),
            ctypes.c_void_p(self.results.ctypes.data),
            ctypes.c_void_p(self.hashes.ctypes.data),
            GROUPS,
            ctypes.c_uint64(self.passes if passes is None else passes),
            ctypes.byref(first),
        )
        return None if right else first


def prepared(library: ctypes.CDLL, name: str, which: int) -> Launched:
    (kernel,) = (kernel for kernel in kernels(library) if kernel.name.decode() == name)
    at = ctypes.byref(kernel)
    operands = np.zeros(library.tensor_operand_bytes(at), np.uint8)
    pointer = ctypes.c_void_p(operands.ctypes.data)
    library.tensor_fill(at, which, pointer)
    expected = Expected()
    assert library.tensor_expect(ctypes.byref(expected), at, which, pointer)
    size = library.tensor_group_values(at) * library.tensor_result_bytes(at)
    return Launched(
        library,
        kernel,
        operands,
        np.full(GROUPS * size, 0xA5, np.uint8),
        np.zeros(GROUPS * kernel.threads, np.uint32),
        expected,
        which,
    )


@pytest.mark.parametrize("which", [RANDOM, EXACT])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(7)
def test_the_host_knows_what_a_kernel_leaves(library: ctypes.CDLL, name: str, which: int) -> None:
    launched = prepared(library, name, which)
    assert (launched.expected.tolerance == 0) == (which == EXACT or "int8" in name)
    launched.launch(3)
    launched.launch(5)
    wrong = launched.wrong()
    assert wrong is None, wrong.what


def test_sums_too_large_to_be_exact_are_reported(library: ctypes.CDLL) -> None:
    launched = prepared(library, "tensor_mma_m16n8k16_fp16", EXACT)
    launched.operands.view(np.float16)[:] = 60000
    library.tensor_expected_release(ctypes.byref(launched.expected))
    pointer = ctypes.c_void_p(launched.operands.ctypes.data)
    at = (ctypes.byref(launched.expected), ctypes.byref(launched.kernel))
    assert library.tensor_expect(*at, EXACT, pointer)
    assert np.isnan(launched.expected.tolerance)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(7)
def test_what_is_wrong_is_found(library: ctypes.CDLL, name: str) -> None:
    launched = prepared(library, name, EXACT)
    launched.launch(2)
    generator = np.random.default_rng(1)
    for _ in range(40):  # one bit of one accumulator of any group
        at, bit = generator.integers(launched.results.size), 1 << generator.integers(8)
        launched.results[at] ^= bit
        assert launched.wrong() is not None, (at, bit)
        launched.results[at] ^= bit
    for _ in range(10):  # one bit of a hash: some pass has left something else
        at, bit = generator.integers(launched.hashes.size), 1 << generator.integers(32)
        launched.hashes[at] ^= np.uint32(bit)
        wrong = launched.wrong()
        assert wrong is not None and b"each of 2 passes" in wrong.what
        launched.hashes[at] ^= np.uint32(bit)
    assert launched.wrong(passes=1) is not None and launched.wrong(passes=3) is not None
    assert launched.wrong() is None


# What sums of random FP8 may lose by rounding is more than a round.
@pytest.mark.parametrize(
    ("name", "which"),
    [(name, which) for name in NAMES for which in (RANDOM, EXACT) if which or "fp8" not in name],
)
@pytest.mark.sampled(7)
def test_a_round_too_few_is_found(library: ctypes.CDLL, name: str, which: int) -> None:
    launched = prepared(library, name, which)
    rounds = library.tensor_rounds(ctypes.byref(launched.kernel), which)
    launched.launch(1, rounds=rounds - 1)
    assert launched.wrong() is not None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(7)
def test_every_element_counts(library: ctypes.CDLL, name: str) -> None:
    """Two elements in each other's place, as a wrong layout would have them: it is seen."""
    launched = prepared(library, name, EXACT)
    size = library.tensor_element_bytes(ctypes.byref(launched.kernel))
    elements = launched.operands.reshape(-1, size)
    generator = np.random.default_rng(2)
    for _ in range(6):
        one = int(generator.integers(len(elements)))
        others = np.flatnonzero((elements != elements[one]).any(axis=1))
        other = int(generator.choice(others))
        elements[[one, other]] = elements[[other, one]]
        launched.launch(1)
        assert launched.wrong(passes=launched.passes) is not None, (one, other)
        elements[[one, other]] = elements[[other, one]]
    launched.hashes[:] = 0
    launched.passes = 0
    launched.launch(1)
    assert launched.wrong() is None


@pytest.mark.parametrize("name", NAMES)
def test_operands_are_dense_and_random(library: ctypes.CDLL, name: str) -> None:
    """Each element has a place of its own, and nothing is left at zero."""
    launched = prepared(library, name, RANDOM)
    at = ctypes.byref(launched.kernel)
    depth, size = library.tensor_depth(at), library.tensor_element_bytes(at)
    places = [
        offset(at, crew, row, element)
        for crew in range(library.tensor_crews(at))
        for offset, rows in (
            (library.tensor_a_offset, library.tensor_a_rows(at)),
            (library.tensor_b_offset, library.tensor_b_rows(at)),
        )
        for row in range(rows)
        for element in range(depth)
    ]
    assert sorted(places) == list(range(0, launched.operands.size, size))
    assert len(set(map(bytes, launched.operands.reshape(-1, 64)))) == launched.operands.size / 64


@pytest.mark.parametrize("name", ["tensor_wgmma_m64n256_bf16", "tensor_mma_m8n8k4_fp16"])
def test_operations_are_counted(library: ctypes.CDLL, name: str) -> None:
    (kernel,) = (kernel for kernel in kernels(library) if kernel.name.decode() == name)
    count = {
        # One instruction, eight slices; eight warps of 2 x 4 tiles, two steps, four products.
        "tensor_wgmma_m64n256_bf16": 2 * 64 * 256 * 16 * 8,
        "tensor_mma_m8n8k4_fp16": 8 * 8 * 2 * 4 * (2 * 8 * 8 * 4),
    }
    assert library.tensor_operations(ctypes.byref(kernel)) == count[name]


def test_elements(library: ctypes.CDLL) -> None:
    """Every pattern of the small formats, and rounding of the large ones."""
    for place, size, exponent_bits, fraction_bits in FORMATS.values():
        patterns = np.arange(1 << (1 + exponent_bits + fraction_bits), dtype=np.uint32)
        shift = 8 * size - 1 - exponent_bits - fraction_bits
        for pattern in patterns[:: 1 if size == 1 else 37]:
            held = np.array([pattern << shift], np.uint32)
            number = library.element_decode(place, ctypes.c_void_p(held.ctypes.data))
            sign, rest = (
                pattern >> (exponent_bits + fraction_bits),
                int(pattern) & ((1 << (exponent_bits + fraction_bits)) - 1),
            )
            exponent, fraction = rest >> fraction_bits, rest & ((1 << fraction_bits) - 1)
            if exponent == (1 << exponent_bits) - 1 and (size != 1 or fraction == 7):
                assert not np.isfinite(number)
                continue
            bias = (1 << (exponent_bits - 1)) - 1
            size_of = (
                (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias)
                if exponent
                else fraction / 2**fraction_bits * 2.0 ** (1 - bias)
            )
            assert number == (-size_of if sign else size_of)
            again = np.zeros(1, np.uint32)
            library.element_encode(
                place, ctypes.c_void_p(again.ctypes.data), ctypes.c_double(number)
            )
            assert again[0] == held[0], number


def test_rounding_of_elements(library: ctypes.CDLL) -> None:
    generator = np.random.default_rng(3)
    numbers = np.concatenate(
        [generator.normal(size=2000), generator.normal(size=200) * 1e-6, [0.0, -0.0, 1 + 2**-11]]
    )
    for number in numbers:
        held = np.zeros(2, np.uint32)
        for place, type_ in ((0, np.float16), (FP32, np.float32), (FP64, np.float64)):
            library.element_encode(
                place, ctypes.c_void_p(held.ctypes.data), ctypes.c_double(number)
            )
            found = held.view(type_)[0]
            assert found == type_(number) and np.signbit(found) == np.signbit(number)


# ---- the workload, on a stand-in for the driver ----


@pytest.mark.parametrize(("capability", "dtype", "shape"), CASES)
@pytest.mark.sampled(7)
def test_each_capability_has_its_instruction(capability: str, dtype: str, shape: str) -> None:
    trial = measure("tensor", f"--dtype={dtype}", *MOMENT, env=environment(cc=capability))
    assert trial.facts["instruction"].startswith(f"{shape} {dtype}, sums in ")
    assert trial.metrics["operations_per_second"] > 0
    assert trial.metrics["operations_per_cycle"] == pytest.approx(
        trial.metrics["operations_per_second"] / trial.metrics["core_clock_hertz"]
    )
    assert ("ptx" in trial.warnings) == (capability == "13.0")
    instruction = shape.split()[0]
    unconfirmed = (
        ""
        if capability == "9.0"
        else "confirmed on an H100 and an H200 (compute capability 9.0) alone"
    )
    if instruction == "tcgen05":
        unconfirmed = "tcgen05.mma never ran on a card"
    assert trial.warnings.get("not_run_on_hardware", "").startswith(unconfirmed)
    assert ("not_run_on_hardware" in trial.warnings) == bool(unconfirmed)


@pytest.mark.parametrize(("capability", "dtype"), MISSING)
def test_a_type_that_a_capability_lacks_is_skipped(capability: str, dtype: str) -> None:
    result = call("tensor", f"--dtype={dtype}", *MOMENT, env=environment(cc=capability))
    refused(result, UNSUPPORTED, dtype, f"compute capability {capability}", "fp16 (mma)")


def test_fp8_of_hopper_is_not_mma() -> None:
    """The compiler would make it of FP16 instructions."""
    result = call(
        *("tensor", "--dtype=fp8", "--instruction=mma", *MOMENT), env=environment(cc="9.0")
    )
    line = refused(result, UNSUPPORTED, "fp8 by --instruction mma", "fp8 (wgmma)")
    assert line.count("fp64 (mma)") == 1  # there are two shapes of it


def test_an_instruction_is_chosen_by_name() -> None:
    trial = measure(
        *("tensor", "--dtype=bf16", "--instruction=mma", *MOMENT), env=environment(cc="9.0")
    )
    assert trial.facts["instruction"].startswith("mma m16n8k16 bf16")
    result = call("tensor", "--instruction=tcgen05", *MOMENT, env=environment(cc="9.0"))
    refused(result, UNSUPPORTED, "--instruction tcgen05", "compute capability 9.0")


WGMMA_BF16 = "tensor_wgmma_m64n256_bf16"


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        (f"{WGMMA_BF16}:1:1", "instead of"),  # an accumulator, in the exact pass
        (f"{WGMMA_BF16}:1:1000", None),  # never reached
        (f"{WGMMA_BF16}:2:1", "passes"),  # a hash
        (f"{WGMMA_BF16}:0:2", "passes"),  # an operand between two launches
    ],
)
def test_a_card_that_computes_wrongly_has_no_figure(wrong: str, part: str | None) -> None:
    result = call("tensor", *MOMENT, env=environment(cc="9.0", wrong=wrong))
    if part is None:
        assert result.returncode == 0, result.stderr
    else:
        refused(result, WRONG, WGMMA_BF16, part, "do not trust")


@pytest.mark.parametrize(("nth", "part"), [(1, "is nan instead of"), (3, "passes")])
def test_launches_that_do_nothing_are_found(nth: int, part: str) -> None:
    env = environment(cc="9.0", lazy=f"{WGMMA_BF16}:{nth}")
    refused(call("tensor", *MOMENT, env=env), WRONG, part, "do not trust")


def test_opencl_has_no_tensor_cores() -> None:
    ways = ("--device", "--param device=")
    refused(call("tensor", *on_pocl(), *MOMENT), UNSUPPORTED, "CUDA alone", *ways)
