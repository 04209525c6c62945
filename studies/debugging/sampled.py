#!/usr/bin/env python3
"""Does perf tell the right names and lines of samples in an output? Each sample is led back to the program (`afterlink where`), and what perf
said is held against that program's symbols and lines.

    sampled.py AFTERLINK PLAIN OUTPUT ARGUMENT …      (the arguments of OUTPUT, which is run)
"""
import bisect
import collections
import os
import re
import subprocess
import sys

from pick import where

BASE = 0x555555554000  # of position-independent programs where addresses are not random


def main():
    afterlink, plain, output, *arguments = sys.argv[1:]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["setarch", "-R", "perf", "record", "-q", "-e", "cpu-clock", "-c", "200000", "-o", "perf.data", output, *arguments], check=True, **quiet)
    text = subprocess.run(["perf", "script", "-F", "ip,sym,dso,srcline", "-i", "perf.data", "--no-demangle"], capture_output=True, text=True).stdout
    name = re.escape(os.path.realpath(output))
    found = re.findall(rf"^ +([0-9a-f]+) (\S+) \({name}\)\n  (\S+)$", text, re.M)
    samples = collections.Counter((int(ip, 16) - BASE, symbol, line) for ip, symbol, line in found)
    asked = sorted({at for at, _, _ in samples})
    back = {at: piece for at, piece in zip(asked, where(afterlink, output, asked)) if piece["reason"] in ("copied", "stayed")}
    inputs = sorted({piece["input"] for piece in back.values()})
    said = subprocess.run(["addr2line", "-e", plain], input="".join(f"{a:#x}\n" for a in inputs), capture_output=True, text=True).stdout
    lines = {at: re.sub(r" \(disc.*", "", os.path.basename(line)) for at, line in zip(inputs, said.splitlines())}
    table = subprocess.run(["nm", "--defined-only", plain], capture_output=True, text=True).stdout
    names = collections.defaultdict(set)
    for address, symbol in re.findall(r"^([0-9a-f]+) [tTwWiuV] (\S+)", table, re.M):
        names[int(address, 16)].add(symbol)
    starts = sorted(names)
    wrong, right, moved = [], 0, 0
    for (at, symbol, line), count in samples.items():
        if at not in back:
            continue
        old = back[at]["input"]
        expected = names[starts[bisect.bisect_right(starts, old) - 1]]
        bare = {re.sub(r"\.(cold|warm|rest|inlined)$", "", n) for n in expected}
        if lines[old] == line and re.sub(r"\.(cold|warm|rest|inlined)$", "", symbol) in bare:
            right += count
            moved += count if back[at]["reason"] == "copied" else 0
        else:
            wrong.append((at, symbol, line, old, sorted(expected), lines[old]))
    print(f"{right} samples right, {moved} of them in moved code, {len(wrong)} places wrong")
    for place in wrong[:5]:
        print(" ", *(f"{x:#x}" if isinstance(x, int) else x for x in place))
    return 1 if wrong or not moved else 0


sys.exit(main())
