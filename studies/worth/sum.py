#!/usr/bin/env python3
"""The lines of stacks.c, to pre-aggregated text: each branch with what ran behind it up to the next one.

usage: sum.py STACKS [TAKE]     TAKE of the samples only, spread evenly over the run

Branches in a row in which one side is outside of the program have nothing that ran between them."""
import sys
from collections import Counter


def outside(address):
    return "X:1" if address == "X" else address


samples = open(sys.argv[1]).read().splitlines()
if len(sys.argv) > 2:
    take = int(sys.argv[2])
    if take > len(samples):
        sys.exit(f"sum.py: {take} samples are wanted, {len(samples)} are there")
    samples = [samples[i * len(samples) // take] for i in range(take)]
traces, branches = Counter(), Counter()
for sample in samples:
    stack = [pair.split("/") for pair in sample.split()]
    for (start, to), (end, _) in zip(stack, stack[1:]):
        if start == to == "X":
            continue
        if to == "X" or end == "X":
            branches[start, to] += 1
        else:
            traces[start, to, end] += 1
    start, to = stack[-1]
    if (start, to) != ("X", "X"):
        branches[start, to] += 1
for (start, to, end), count in sorted(traces.items()):
    print("T", outside(start), to, end, count)
for (start, to), count in sorted(branches.items()):
    print("B", outside(start), outside(to), count, 0)
