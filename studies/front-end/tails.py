#!/usr/bin/env python3
"""How many bytes of code that runs functions could save by sharing how they end: pops, and the return behind them.

    valgrind --tool=callgrind --dump-instr=yes --callgrind-out-file=run.out PROGRAM …
    tails.py run.out --program FILE [--times N] [--often N]

A tail is what runs in front of a return in a straight line and means the same anywhere: no calls, no branches, no addresses by where it stands. Functions
whose tails are the same jump to one of them, with five bytes. Told for functions that return up to so many times in each of the N times (1) that the
program does its work; the jumps are those that are then taken more, each time.
"""

import argparse
import re
import subprocess
from collections import Counter, defaultdict

from limit import read_counts

JUMP = 5
LONGEST = 40  # instructions; a restore of all registers is far shorter
BOUND_TO_ITS_PLACE = re.compile(r"\(%rip\)|^(bnd |notrack )?(call|j\w+)\b")


def disassembled(path):
    """Address, bytes and text of each instruction, ascending."""
    text = subprocess.run(["objdump", "-d", "-w", path], capture_output=True, text=True, check=True).stdout
    found = (re.match(r" *([0-9a-f]+):\t([0-9a-f ]+?) *(?:\t(.*))?$", line) for line in text.splitlines())
    return [(int(m[1], 16), bytes.fromhex(m[2]), m[3] or "") for m in found if m]


def tails(instructions, executed):
    """Of each return that ran: how often, and its tail, last instruction first."""
    for last, (address, encoded, text) in enumerate(instructions):
        if not text.startswith("ret") or address not in executed:
            continue
        tail = [encoded]
        for start, encoded, text in reversed(instructions[max(0, last - LONGEST) : last]):
            if start + len(encoded) != address or start not in executed or BOUND_TO_ITS_PLACE.search(text):
                break
            tail.append(encoded)
            address = start
        yield executed[instructions[last][0]], tuple(tail)


def shared(found):
    """Bytes that are saved, and executions of the jumps, if each function shares the longest tail that another has, too."""
    having = Counter(tail[:length] for _, tail in found for length in range(1, len(tail) + 1))
    groups = defaultdict(list)
    for count, tail in found:
        longest = next((length for length in range(len(tail), 0, -1) if having[tail[:length]] > 1), 0)
        if sum(map(len, tail[:longest])) > JUMP:
            groups[tail[:longest]].append(count)
    saved = sum((len(counts) - 1) * (sum(map(len, tail)) - JUMP) for tail, counts in groups.items())
    return saved, sum(sum(counts) - max(counts) for counts in groups.values())


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("counts")
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--times", type=int, default=1)
    arguments.add_argument("--often", type=int, default=1)
    given = arguments.parse_args()
    counts = next(of for name, of in read_counts(given.counts).items() if name.endswith(given.program))
    executed = {address: count for address, (count, _) in counts.items() if count >= given.often}
    instructions = disassembled(given.program)
    total = sum(len(encoded) for address, encoded, _ in instructions if address in executed)
    found = list(tails(instructions, executed))
    print(f"{total} bytes run, {len(found)} returns")
    for most in (1, 2, 4, 8, None):
        of = [(count, tail) for count, tail in found if most is None or count <= most * given.times]
        saved, jumps = shared(of)
        print(f"returns up to {most or 'any number of'} times: {len(of)}, {saved} bytes less ({saved / total:.2%}), {jumps / given.times:.0f} jumps more")


if __name__ == "__main__":
    main()
