"""The same binary through the stack and alone in the same image, in pairs.

    python -m benchmarks.stack.through_stack [PAIRS]

Needs a running stack (make up) and `docker compose` for it.
"""

import json
import subprocess
from typing import Any

import httpx

from benchmarks.arguments import given_number
from benchmarks.figures import Entry, save, spread
from benchmarks.quiet import wait_until_idle
from benchmarks.stack.jobs import client, result

PAIRS = 10
PARAMS: dict[str, Any] = {"dtype": "fp64", "isa": "avx2", "threads": 1, "duration_s": 2.0}
SPEC = {"workload": "cpu.fma", "params": PARAMS, "trials": 1, "idle_policy": "force"}
RATE = "operations_per_second"


def through_stack(api: httpx.Client) -> float:
    """Return the operations per second of one trial of a job."""
    trial = result(api, SPEC)["cases"][0]["trials"][0]
    return float(trial["value"])


def alone() -> float:
    """Run the program by hand in the service's image and return its operations per second."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in PARAMS.items()]
    command = ["docker", "compose", "run", "--rm", "--no-deps", "-T", "--entrypoint", "cpu-bench"]
    output = subprocess.run(
        [*command, "cpu", "fma", *options], check=True, capture_output=True, text=True
    ).stdout
    return float(json.loads(output.splitlines()[-1])["metrics"][RATE])


def main() -> None:
    """Print the ratios and save the raw figures."""
    pairs = given_number(PAIRS)
    stack: list[float] = []
    program: list[float] = []
    with client() as api:
        for index in range(pairs):
            wait_until_idle()
            stack.append(through_stack(api))
            wait_until_idle()
            program.append(alone())
            ours, other = stack[-1], program[-1]
            print(f"{index + 1:>2}: {ours / 1e9:.2f} {other / 1e9:.2f} {ours / other:.4f}")
    ratios = spread([a / b for a, b in zip(stack, program, strict=True)])
    print(f"ratio: median {ratios['median']:.4f}, {ratios['min']:.4f} to {ratios['max']:.4f}")
    save("stack/through_stack", [Entry({}, {"stack": stack, "alone": program})])


if __name__ == "__main__":
    main()
