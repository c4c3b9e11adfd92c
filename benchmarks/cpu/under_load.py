"""Verdict and clean-slice median with and without a competing load on the same CPUs.

usage: python -m benchmarks.cpu.under_load [TRIALS]
(default 10 under load, twice as many quiet; needs stress-ng)
"""

import json
import statistics
import subprocess
import time

from benchmarks.arguments import given_number
from benchmarks.cpu.trials import Events, cpu_bench
from benchmarks.figures import ALL_THREADS, Entry, save
from hostbench.judge.trial import trial_disturbances
from hostbench.model.events import EndEvent, StartEvent

COMMAND = "fma --duration-s 1"


def trial() -> Events:
    """Run one trial and return its figures, and the disturbances that the verdict's own rules find
    in it."""
    events = cpu_bench(COMMAND)
    reasons = trial_disturbances(
        StartEvent.model_validate_json(json.dumps(events["start"])),
        EndEvent.model_validate_json(json.dumps(events["end"])),
    )
    end = events["end"]
    return {
        "disturbed": [reason.code for reason in reasons],
        "basis": end["basis"],
        "clean_slice_ratio": end["metrics"]["clean_slice_ratio"],
        "operations_per_second": end["metrics"]["operations_per_second"],
        "operations_per_second_makespan": end["metrics"]["operations_per_second_makespan"],
        "operations_per_cycle": end["metrics"]["operations_per_cycle"],
    }


def show(name: str, trials: list[Events], quiet: float) -> None:
    disturbed = sum(bool(one["disturbed"]) for one in trials)
    print(f"{name}: {disturbed} of {len(trials)} disturbed")
    for one in trials:
        print(
            f"  clean slices {one['clean_slice_ratio']:.0%}, {one['basis']}: "
            f"{one['operations_per_second'] / quiet:.3f} of the quiet median, "
            f"whole run {one['operations_per_second_makespan'] / quiet:.3f}, "
            f"{', '.join(one['disturbed']) or 'undisturbed'}"
        )


def entry(load: str, trials: list[Events]) -> Entry:
    columns = {name: [one[name] for one in trials] for name in trials[0]}
    return Entry(
        {"load": load, "command": f"cpu-bench {COMMAND}"},
        {**columns, "disturbed": [" ".join(codes) for codes in columns["disturbed"]]},
    )


def main() -> None:
    count = given_number(10)
    quiet = [trial() for _ in range(2 * count)]
    load = subprocess.Popen(
        ["stress-ng", "--cpu", str(ALL_THREADS), "--timeout", f"{2 * count + 5}s", "--quiet"]
    )
    time.sleep(1)
    loaded = [trial() for _ in range(count)]
    load.terminate()
    load.wait()
    middle = statistics.median(one["operations_per_second"] for one in quiet)
    show("quiet", quiet, middle)
    show("loaded", loaded, middle)
    save("cpu/under_load", [entry("none", quiet), entry("stress-ng", loaded)])


if __name__ == "__main__":
    main()
