"""Compiles the GPU kernels with NVRTC and writes the C file that carries them.

    python3 services/gpu/kernels/build.py build/gpu/nvrtc build/gpu

takes NVRTC from the directory that its wheel was installed into and leaves in the other one a
CUBIN or a PTX file per target, and kernels.c: these files, the OpenCL source, and the index of
which kernel is in which. `none` in the place of NVRTC's directory leaves kernels.c with the OpenCL
source alone. Standard library alone: no environment exists yet when the programs are built.
"""

import ctypes
import os
import re
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SHARED = ["vector.k", "memory.k", "chase.k"]

# Every architecture whose code differs, from Volta on, oldest first. What lies between runs that of
# an older minor version (8.7: 8.6), what comes later the newest PTX, and other majors that of 8.0.
ALL = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
PTX = ["compute_80", "compute_120"]

# Sources of a set, and its targets. A target that ends in "a" runs on that one capability alone.
SETS: dict[str, tuple[list[str], list[str]]] = {
    "shared": (["prelude_cuda.h", *SHARED], [*ALL, *PTX]),
    "mma": (["prelude_tensor.h", "tensor_mma.cu"], [*ALL, *PTX]),
    "wgmma": (["prelude_tensor.h", "tensor_wgmma.cu"], ["sm_90a"]),
    "tcgen05": (["prelude_tensor.h", "tensor_tcgen05.cu"], ["sm_100a", "sm_103a"]),
}

# No --use_fast_math, no contraction: an FMA is written as one, and nothing else becomes one.
OPTIONS = ["--std=c++17", "--fmad=false", "--prec-div=true", "--device-as-default-execution-space"]


@dataclass(frozen=True)
class Target:
    """One file to be made: a set for an architecture."""

    name: str  # of the set
    arch: str  # "sm_90", "compute_120"

    @property
    def file(self) -> str:
        """What messages call it: its name on disk."""
        return f"{self.name}_{self.arch}.{'ptx' if self.ptx else 'cubin'}"

    @property
    def ptx(self) -> bool:
        """Whether the driver compiles it."""
        return self.arch.startswith("compute_")

    @property
    def one_only(self) -> bool:
        """Whether it runs on this very capability alone."""
        return self.arch.endswith("a")

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor compute capability."""
        number = int(self.arch.split("_")[1].rstrip("a"))
        return number // 10, number % 10


class Nvrtc:
    """The library, loaded from the directory its wheel was installed into."""

    def __init__(self, directory: Path) -> None:
        """Raise FileNotFoundError when there is no NVRTC in it."""
        folder = directory / "nvidia" / "cuda_nvrtc" / "lib"
        # The compiler opens its built-in functions by name; loaded before it, they are found.
        for pattern in ("libnvrtc-builtins.so.*", "libnvrtc.so.*"):
            found = sorted(folder.glob(pattern))
            if not found:
                raise FileNotFoundError(f"{folder} has no {pattern}: NVRTC is not installed in it")
            self.library = ctypes.CDLL(str(found[0]), mode=ctypes.RTLD_GLOBAL)

    def text(self, program: ctypes.c_void_p, what: str) -> bytes:
        """One of a program's texts: "ProgramLog", "CUBIN", "PTX"."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw[: size.value]

    def call(self, function: str, *arguments: object) -> None:
        """Raise RuntimeError with the library's word for the error."""
        code = getattr(self.library, function)(*arguments)
        if code != 0:
            self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(f"{function}: {self.library.nvrtcGetErrorString(code).decode()}")

    def compile(self, source: str, name: str, arch: str) -> bytes:
        """CUBIN of a real architecture, PTX of a virtual one. RuntimeError: its messages."""
        program = ctypes.c_void_p()
        options = [option.encode() for option in (f"--gpu-architecture={arch}", *OPTIONS)]
        self.call(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            source.encode(),
            name.encode(),
            0,
            None,
            None,
        )
        array = (ctypes.c_char_p * len(options))(*options)
        try:
            self.call("nvrtcCompileProgram", program, len(options), array)
        except RuntimeError as error:
            log = self.text(program, "ProgramLog").decode(errors="replace")
            raise RuntimeError(f"{name} for {arch}: {error}\n{log}") from None
        return self.text(program, "PTX" if arch.startswith("compute_") else "CUBIN")


def joined(files: list[str]) -> str:
    """The files one after the other; compilers' messages name the file and its line."""
    return "".join(f'#line 1 "{name}"\n{(HERE / name).read_text()}\n' for name in files)


def opencl_source() -> str:
    """One source for OpenCL, where #line would only confuse some compilers."""
    return "\n".join((HERE / name).read_text() for name in ["prelude_opencl.h", *SHARED])


def compile_target(nvrtc: Path, output: Path, target: Target) -> None:
    """Make one file."""
    code = Nvrtc(nvrtc).compile(joined(SETS[target.name][0]), f"{target.name}.cu", target.arch)
    (output / target.file).write_bytes(code)


def cubin_kernels(code: bytes) -> list[str]:
    """The kernels of a CUBIN: the names behind .text. among its ELF sections, sorted."""
    headers, size, count, names_index = (
        struct.unpack_from("<Q", code, 40)[0],
        *struct.unpack_from("<HHH", code, 58),
    )

    def section(index: int) -> tuple[int, int]:
        name, offset = struct.unpack_from("<I20xQ", code, headers + index * size)
        return name, offset

    names = section(names_index)[1]
    found = []
    for index in range(count):
        start = names + section(index)[0]
        name = code[start : code.index(b"\0", start)].decode()
        if name.startswith(".text."):
            found.append(name.removeprefix(".text."))
    return sorted(found)


def kernels_of(target: Target, code: bytes) -> list[str]:
    """Names of the kernels in a file, sorted."""
    if target.ptx:
        return sorted(re.findall(r"\.entry (\w+)\(", code.decode().rstrip("\0")))
    return cubin_kernels(code)


def c_strings(text: str) -> Iterator[str]:
    """A text as C string literals, one a line."""
    for line in text.splitlines():
        escaped = line.replace("\\", "\\\\").replace('"', '\\"')
        yield f'    "{escaped}\\n"'


def carrier(output: Path, targets: list[Target]) -> str:
    """The C file: images by .incbin, from where make runs; their index; the OpenCL source."""
    header = os.path.relpath(HERE.parent / "bench" / "kernel_set.h", output)
    lines = ["/* Written by services/gpu/kernels/build.py. */", f'#include "{header}"', ""]
    rows = []
    for number, target in enumerate(targets):
        path = output / target.file
        code = path.read_bytes()
        major, minor = target.capability
        flags = f"{str(target.ptx).lower()}, {str(target.one_only).lower()}"
        names = ", ".join(f'"{name}"' for name in kernels_of(target, code))
        lines += [
            f'__asm__(".section .rodata\\n.balign 64\\nimage_{number}:\\n"',
            f'        ".incbin \\"{path}\\"\\n.previous");',
            f"extern const unsigned char image_{number}[];",
            f"static const char *const names_{number}[] = {{{names}, NULL}};",
            "",
        ]
        rows.append(
            f'    {{"{target.file}", {major}, {minor}, {flags}, image_{number}, {len(code)}, '
            f"names_{number}}},"
        )
    source = opencl_source()
    return "\n".join(
        [
            *lines,
            "const struct kernel_image kernel_images[] = {",
            *rows,
            "    {0},",
            "};",
            "",
            "const char kernel_opencl_text[] =",
            *c_strings(source),
            "    ;",
            "const size_t kernel_opencl_bytes = sizeof kernel_opencl_text - 1;",
            "",
        ]
    )


def main(nvrtc: Path | None, output: Path) -> None:
    """Compile all targets, two at a time, and write kernels.c last: it is what make looks at."""
    output.mkdir(parents=True, exist_ok=True)
    targets: list[Target] = []
    if nvrtc is not None:
        targets = [Target(name, arch) for name, (_, archs) in SETS.items() for arch in archs]
        with ProcessPoolExecutor(2) as pool:
            for made in [pool.submit(compile_target, nvrtc, output, target) for target in targets]:
                made.result()
    (output / "kernels.c").write_text(carrier(output, targets))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} NVRTC_DIRECTORY|none OUTPUT_DIRECTORY")
    try:
        main(None if sys.argv[1] == "none" else Path(sys.argv[1]), Path(sys.argv[2]))
    except (OSError, RuntimeError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
