#!/usr/bin/env python3
"""How few cache lines a program's executed code could stand in, and how many it stands in.

    valgrind --tool=callgrind --dump-instr=yes --cache-sim=yes --I1=32768,8,64 --callgrind-out-file=run.out PROGRAM …
    limit.py run.out [--times N] [--often N] [--program FILE]

Of each object: the bytes of instructions that ran, the lines and pages that they would fill if they stood side by side, those that they
touch, and the misses of the simulated instruction cache. With --times N, for a program that does the same thing N times and whose code for it
is larger than the cache: how many misses are the least, one for each line each time, and how far off it is. --often N leaves out what was
executed less often, start and end of the program. --program FILE is the program itself, where it has code that valgrind takes for nobody's: what
afterlink wrote lies in a segment of its own, of which valgrind knows addresses in memory only. Of it, what else stands in the lines that it touches is told, too.
"""

import argparse
import re
import subprocess
from collections import defaultdict

LINE, PAGE = 64, 4096
PADDING = re.compile(r"((data16|cs) )*(nop|int3|xchg +%ax,%ax)")
NOBODY = "???"


def read_counts(path):
    """Executions and misses of each instruction, by object and address in its file."""
    counts = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    names, here, address, events, calls = {}, None, 0, [], False
    with open(path) as lines:
        for line in lines:
            if line.startswith("events:"):
                events = line.split()[1:]
                executed = events.index("Ir")
                missed = events.index("I1mr") if "I1mr" in events else None
            elif line.startswith("ob="):
                number, name = re.match(r"ob=\((\d+)\)(?: (.*))?", line.strip()).groups()
                here = names.setdefault(number, name)
            elif line.startswith("cob="):
                number, name = re.match(r"cob=\((\d+)\)(?: (.*))?", line.strip()).groups()
                names.setdefault(number, name)
            elif line.startswith("calls="):
                calls = True
            elif line[0] in "+-*0" and here is not None:
                words = line.split()
                address = moved(words[0], address)
                if not calls:  # What a call costs is its callee's.
                    found = counts[here][address]
                    values = [int(word) for word in words[2:]]
                    found[0] += values[executed] if executed < len(values) else 0
                    if missed is not None and missed < len(values):
                        found[1] += values[missed]
                calls = False
    return counts


def moved(word, address):
    if word == "*":
        return address
    if word[0] in "+-":
        return address + int(word)
    return int(word, 16)


def disassembled(path):
    """Where instructions start, ascending, by the disassembler, and whether they are padding."""
    text = subprocess.run(["objdump", "-d", "-w", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ *([0-9a-f]+):\t(.*)$", text, re.M)
    return {int(start, 16): bool(PADDING.match(words)) for start, words in found}


def sizes(starts, addresses):
    """Bytes of the instructions at these addresses."""
    starts = list(starts)
    following = dict(zip(starts, starts[1:]))
    # The last of a section is followed by another section: no instruction has more than fifteen bytes.
    return {a: min(following.get(a, a + 4) - a, 15) for a in addresses}


def take_home(counts, program):
    """Moves what is nobody's to the program: the distance, a multiple of a page, at which most of it is an instruction there."""
    strangers = counts.pop(NOBODY, None)
    if not strangers:
        return
    starts = disassembled(program)
    often = sorted(strangers, key=lambda a: -strangers[a][0])[:200]
    distances = {often[0] - start for start in starts if (often[0] - start) % PAGE == 0}
    distance = max(distances, key=lambda d: sum(a - d in starts for a in often))
    own = next((name for name in counts if name and name.endswith(program.split("/")[-1])), program)
    for address, found in strangers.items():
        if address - distance in starts:
            counts[own][address - distance] = found


def beside(instructions, hot, lines):
    """Bytes of padding, and of other code than what is hot, in these lines."""
    found = [0, 0]
    cold = [start for start in instructions if start not in hot]
    for start, size in sizes(instructions, cold).items():
        found[not instructions[start]] += sum(place // LINE in lines for place in range(start, start + size))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts")
    parser.add_argument("--times", type=int, default=0)
    parser.add_argument("--often", type=int, default=1)
    parser.add_argument("--program")
    options = parser.parse_args()
    counts = read_counts(options.counts)
    if options.program:
        take_home(counts, options.program)
    print(f"{'bytes':>9} {'lines':>7} {'touched':>8} {'pages':>6} {'touched':>8} {'misses':>12}  object")
    total, misses = 0, 0
    for name, of in sorted(counts.items(), key=lambda item: -sum(n for n, _ in item[1].values())):
        hot = {a: n for a, (n, _) in of.items() if n >= options.often}
        if not hot or not name or not name.startswith("/"):
            continue
        instructions = disassembled(name)
        size = sizes(instructions, hot)
        spans = [(a, a + size[a]) for a in hot]
        packed = sum(size.values())
        lines = {place for start, end in spans for place in range(start // LINE, (end - 1) // LINE + 1)}
        pages = {place for start, end in spans for place in range(start // PAGE, (end - 1) // PAGE + 1)}
        missed = sum(m for _, m in of.values())
        fewest = -(-packed // LINE)
        total, misses = total + fewest, misses + missed
        print(f"{packed:9} {fewest:7} {len(lines):8} {-(-packed // PAGE):6} {len(pages):8} {missed:12}  {name}")
        if options.program and name.endswith(options.program.split("/")[-1]):
            padding, other = beside(instructions, hot, lines)
            print(f"{'':9} in these lines, {padding} bytes of padding and {other} of other code")
    if options.times:
        limit = total * options.times
        print(f"at least {limit} misses ({total} lines, {options.times} times); {misses} seen, {misses / limit:.2f} of it")


if __name__ == "__main__":
    main()
