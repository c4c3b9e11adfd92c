"""hpcc (HPC Challenge), as users of LINPACK and STREAM know it.

One run does all its tests, and no option selects one (src/io.c). So it takes most of a minute for
what one test does in seconds, and is not light. The sizes of its tests follow from that of HPL,
which uses the installed BLAS.
"""

import math
import re
from abc import abstractmethod
from pathlib import Path

from hostbench.base.units import binary_bytes
from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Peer, Survey
from hostbench.programs.tools.placement import crowded
from hostbench.programs.tools.reading import NUMBER, expect, number

# The available memory, and a container's limit: cgroup v2, or v1.
MEMORY = (
    "sh",
    "-c",
    "cat /proc/meminfo; cat /sys/fs/cgroup/memory.max"
    " /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; true",
)
PACKAGE = "hpcc libopenblas0-pthread"
TOOL = "hpcc"
# Debian's hpcc is built for OpenMPI; mpirun may belong to another MPI.
MPIRUN = "mpirun.openmpi"
INPUT, REPORT = "hpccinf.txt", "hpccoutf.txt"
# Each rank takes the CPUs at its number. mpirun could start several programs, each with its own
# CPUs, but then crashes in Debian 13 and Ubuntu from 25.04 on: open-mpi/ompi#13303.
RANK = f'shift "$OMPI_COMM_WORLD_RANK"; exec taskset --cpu-list "$1" {TOOL}'
# The usual value with OpenBLAS; 128 to 256 differ by a percent or two.
BLOCK_SIZE = 192
# Memory in units of HPL's matrix: up to 1.2 were seen.
MATRICES = 1.5
_OPENBLAS = re.compile(r"openblas\w*-r([\d.]+\d)")

# _hpccinf.txt of the package, and HPL.dat of HPL itself, with n, NB, P, Q and the output file set;
# everything else is unchanged.
HPL_INPUT = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
{device}            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
{count}            # of NBs
{sizes}         NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p}          Ps
{q}          Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


class Hpcc(Peer):
    """One hpcc run, for any of its figures."""

    tool = TOOL
    package = PACKAGE
    light = False
    # Why the reference BLAS makes the figure incomparable.
    reference_blas: str
    hpl_n: int

    @property
    def needs(self) -> tuple[str, ...]:
        return (TOOL, MPIRUN)

    def trial_time_s(self, elapsed_s: float) -> float:
        # On two cores: 2 s for n = 2000, 42 to 74 s for 8000; most tests scale with the memory.
        return 2.0 + 1.2 * (self.hpl_n / 1000) ** 2 + (self.hpl_n / 1000) ** 3 / 60

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        package_version = ask(("dpkg-query", "--show", "--showformat", "${Version}", TOOL)).strip()
        library = blas_of(ask(("sh", "-c", f'ldd "$(command -v {TOOL})"')))
        unsupported = None
        if library is not None and is_reference_blas(library):
            unsupported = (
                f"libblas.so.3 is the reference BLAS ({library}), {self.reference_blas}; "
                "install OpenBLAS with: apt install libopenblas0-pthread"
            )
        unsupported = (
            crowded(TOOL, beside) or unsupported or lacking_memory(ask(MEMORY), self.hpl_n)
        )
        return Survey(package_version or None, library, unsupported)

    @abstractmethod
    def ranks(self, beside: Beside) -> list[tuple[int, ...]]:
        """Return the CPUs of each rank; ranks times BLAS threads are our threads."""

    def command(self, beside: Beside) -> Command:
        ranks = self.ranks(beside)
        threads = len(ranks[0])
        settings = (
            f"OPENBLAS_NUM_THREADS={threads}",
            f"OMP_NUM_THREADS={threads}",
            # If we are root, so is mpirun, in its scratch directory.
            "OMPI_ALLOW_RUN_AS_ROOT=1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        )
        lists = [",".join(str(cpu) for cpu in cpus) for cpus in ranks]
        programs = ("-np", str(len(ranks)), "sh", "-c", RANK, TOOL, *lists)
        rows, columns = grid(len(ranks))
        text = HPL_INPUT.format(
            n=self.hpl_n, device=8, count=1, sizes=BLOCK_SIZE, p=rows, q=columns
        )
        # taskset pins the ranks; mpirun must neither bind them nor count cores.
        options = ("--use-hwthread-cpus", "--bind-to", "none")
        return Command(
            ("env", *settings, MPIRUN, *options, *programs), files={INPUT: text}, report=REPORT
        )

    def check(self, output: str, beside: Beside) -> None:
        """Raise BadOutput unless all its own checks passed and it ran with the requested ranks."""
        expect("Success", int(number(rf"^Success={NUMBER}$", output, "Success")), 1)
        ranks = number(rf"^CommWorldProcs={NUMBER}$", output, "CommWorldProcs")
        expect("ranks", int(ranks), len(self.ranks(beside)))


def grid(ranks: int) -> tuple[int, int]:
    """Return P and Q: as square as possible with P <= Q, as HPL's authors recommend."""
    rows = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return rows, ranks // rows


def lacking_memory(answer: str, hpl_n: int) -> str | None:
    """Return why there is not enough memory for HPL's matrix and the other tests, or None if there
    is enough, or it is unknown. `answer`: the output of MEMORY."""
    available = re.findall(r"^MemAvailable:\s+(\d+) kB$", answer, re.MULTILINE)
    left = [int(kibibytes) * 1024 for kibibytes in available]
    left += [int(limit) for limit in re.findall(r"^(\d+)$", answer, re.MULTILINE)]
    needed = MATRICES * 8 * hpl_n * hpl_n
    if not left or needed <= min(left):
        return None
    return (
        f"{TOOL} takes about {binary_bytes(needed)} for HPL of n = {hpl_n}, and "
        f"{binary_bytes(min(left))} are available; ask for a smaller n"
    )


def blas_of(ldd_output: str) -> str | None:
    """Return the file behind libblas.so.3, with the version if it is OpenBLAS, or None if
    unknown."""
    paths = dict(re.findall(r"^\s*(lib(?:open)?blas\S*) => (/\S+)", ldd_output, re.MULTILINE))
    if "libblas.so.3" not in paths:
        return None
    real = str(Path(paths["libblas.so.3"]).resolve())
    for name, path in paths.items():
        found = _OPENBLAS.search(str(Path(path).resolve())) if "openblas" in name else None
        if found:
            return f"OpenBLAS {found[1]} ({real})"
    return real


def is_reference_blas(library: str) -> bool:
    """Whether it is the Fortran reference implementation, by Debian's path for it."""
    return Path(library.rpartition("(")[2].rstrip(")")).parent.name == "blas"
