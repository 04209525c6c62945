#!/usr/bin/env python3
"""Whether the model's cycles say which layout of a program is faster: measured on this machine, held against what model.sh counted.

    validate.py measure TSV PROGRAM FOLDER ROUNDS COMMAND …   runs each layout (FOLDER/LAYOUT/…) once a round, in another order each time
    validate.py tell TSV [COUNTS [PROCESSOR]]                 reliability, and with the model's folder of counts the rank correlation, by that file's weights
    validate.py against TSV BASE                              each layout's time as a share of the layout BASE's, with a 95 % interval
    validate.py factors TSV                                   what each choice does (factors.sh), of layouts that are named by their choices

In COMMAND, {} is the program. Each run is of a fresh copy, pinned to one processor; what counts is its CPU time. A line of the TSV is a run: program,
layout, round, seconds. Measuring goes on where the TSV ends. A layout's time is the lowest tenth of its runs, since
neighbours on a shared machine only ever add to it. The reliability of that is the rank
correlation of what one half of the rounds says with what the other says: where it is low, the machine cannot tell the layouts apart, and no prediction
of their order could be held against it.
"""

import os
import random
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict

LOW = 0.1
FEWEST = 8
ENOUGH = 0.8


def read(path):
    """Seconds, by program, layout and round."""
    runs = defaultdict(lambda: defaultdict(dict))
    if os.path.exists(path):
        for line in open(path):
            program, layout, number, seconds = line.rstrip("\n").split("\t")
            runs[program][layout][int(number)] = float(seconds)
    return runs


def measure(path, program, folder, rounds, command):
    layouts = sorted(os.listdir(folder))
    files = {layout: os.path.join(folder, layout, os.listdir(os.path.join(folder, layout))[0]) for layout in layouts}
    done = read(path)[program]
    cpus = sorted(os.sched_getaffinity(0))
    with open(path, "a") as out:
        for number in range(rounds):
            order = [layout for layout in layouts if number not in done[layout]]
            random.Random(f"{program} {number}").shuffle(order)
            for layout in order:
                copy = f"{folder}/../copy-{os.getpid()}"
                shutil.copyfile(files[layout], copy)
                os.chmod(copy, 0o755)
                seconds = run([word.replace("{}", copy) for word in command], cpus[number % len(cpus)])
                os.unlink(copy)
                out.write(f"{program}\t{layout}\t{number}\t{seconds:.6f}\n")
                out.flush()


def run(command, cpu):
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{command} ended with {status}")
    return usage.ru_utime + usage.ru_stime


def low(seconds):
    ordered = sorted(seconds)
    return ordered[int(LOW * len(ordered))]


def ranks(values):
    """Equal values share a rank."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for i in order[start:end]:
            found[i] = (start + end - 1) / 2
        start = end
    return found


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    over = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return over / spread**0.5 if spread else 0.0


def predicted(counts, program, layout, weights):
    """The model's cycles, with other weights than it had if there are any."""
    events = dict(line.split() for line in open(os.path.join(counts, program, layout)))
    if weights:
        return sum(weights.get(event, 0) * int(value) for event, value in events.items())
    return int(events["cycles"])


def weights_of(processor):
    rows = (line.split() for line in open(processor) if line.startswith("weight."))
    return {name.removeprefix("weight."): float(value) for name, value in rows}


def tell(path, counts, weights):
    print(f"{'program':12} layouts runs  spread  reliability" + ("  model" if counts else ""))
    for program, layouts in read(path).items():
        names = sorted(name for name, runs in layouts.items() if len(runs) >= FEWEST)
        if len(names) < 3:
            continue
        times = [low(layouts[name].values()) for name in names]
        halves = [[low(s for n, s in layouts[name].items() if n % 4 // 2 == half) for name in names] for half in (0, 1)]
        reliable = spearman(*halves)
        text = f"{program:12} {len(names):7} {min(len(layouts[n]) for n in names):4}  {max(times) / min(times) - 1:6.1%}  {reliable:11.2f}"
        if counts and not all(os.path.exists(os.path.join(counts, program, name)) for name in names):
            text += "  not counted"
        elif counts:
            text += f"  {spearman(times, [predicted(counts, program, name, weights) for name in names]):5.2f}"
        print(text + ("" if reliable >= ENOUGH else "   not reliable"))


def against(path, base):
    """Shares of the base's time; the interval by drawing rounds anew."""
    chance = random.Random(1)
    for program, layouts in read(path).items():
        for layout, runs in sorted(layouts.items()):
            rounds = [number for number in runs if number in layouts[base]]

            def share(numbers):
                return low(runs[n] for n in numbers) / low(layouts[base][n] for n in numbers)

            drawn = sorted(share(chance.choices(rounds, k=len(rounds))) for _ in range(2000))
            print(f"{program:12} {layout:28} {share(rounds):.4f} [{drawn[50]:.4f}, {drawn[1949]:.4f}]  {len(rounds)} runs")


def choices(layout):
    """`share=1,pass=inlining,skip=plt-calls` as what was chosen, by name."""
    pairs = (choice.split("=") for choice in layout.split(","))
    switches = {"pass": "on", "skip": "off"}
    return {f"pass {value}" if name in switches else name: switches.get(name, value) for name, value in pairs}


def factors(path):
    for program, layouts in read(path).items():
        fewest = min(len(runs) for runs in layouts.values())
        times = {layout: low(runs.values()) for layout, runs in layouts.items()}
        chosen = {layout: choices(layout) for layout in times if "=" in layout}
        plain = times.get("plain", 1.0)
        shares = [times[layout] / plain for layout in chosen]
        print(f"{program}: {len(chosen)} layouts, {fewest} runs of each; mean {statistics.mean(shares):.4f} of plain, "
              f"{min(shares):.4f} to {max(shares):.4f}, standard deviation {statistics.stdev(shares):.4f}")
        for name in sorted({name for all_of in chosen.values() for name in all_of}):
            values = sorted({all_of.get(name, "") for all_of in chosen.values()}, key=lambda v: (len(v), v))
            for value in values[1:]:
                print("  " + effect(name, values[0], value, chosen, times))


def effect(name, usual, value, chosen, times):
    def rest(layout):
        return frozenset((n, v) for n, v in chosen[layout].items() if n != name)

    base = {rest(layout): times[layout] for layout in chosen if chosen[layout].get(name, "") == usual}
    pairs = [times[layout] / base[rest(layout)] - 1 for layout in chosen if chosen[layout].get(name, "") == value and rest(layout) in base]
    error = 1.96 * statistics.stdev(pairs) / len(pairs) ** 0.5
    return f"{name} {value} against {usual or 'the default'}: {statistics.mean(pairs):+.2%} ± {error:.2%} ({len(pairs)} pairs)"


def main():
    match sys.argv[1:]:
        case ["measure", path, program, folder, rounds, *command]:
            measure(path, program, folder, int(rounds), command)
        case ["against", path, base]:
            against(path, base)
        case ["factors", path]:
            factors(path)
        case ["tell", path, *counts]:
            tell(path, counts[0] if counts else None, weights_of(counts[1]) if counts[1:] else None)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
