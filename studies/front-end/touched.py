#!/usr/bin/env python3
"""Pages of a program's code that runs touched, from what touched.c wrote.

    touched.py PROGRAM PREFIX [NAME]

Prints a line: pages with code that ran, the fewest of them that hold 99.9 % of all executed bytes of code, cache lines with code that ran, bytes that
ran. --sections prints how many pages each section of the program has of them, in place of it.
"""

import glob
import os
import subprocess
import sys
from collections import defaultdict

LINE, PAGE = 64, 4096
OFTEN = 0.999


def read_runs(program, prefix):
    """Executions of each byte of the program's file."""
    runs = defaultdict(int)
    real = os.path.realpath(program)
    for path in glob.glob(prefix + ".*"):
        with open(path) as lines:
            for line in lines:
                where, offset, size, executions = line.rsplit(" ", 3)
                if where == real:
                    for byte in range(int(offset, 16), int(offset, 16) + int(size)):
                        runs[byte] += int(executions)
    return runs


def pages_of(runs):
    pages = defaultdict(int)
    for byte, executions in runs.items():
        pages[byte // PAGE] += executions
    return pages


def often(pages):
    """The fewest pages that hold nearly all of what was executed."""
    wanted, count = OFTEN * sum(pages.values()), 0
    for executions in sorted(pages.values(), reverse=True):
        if wanted <= 0:
            break
        wanted -= executions
        count += 1
    return count


def sections(program):
    text = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        words = line[line.find("]") + 1:].split()
        if len(words) > 6 and words[1] in ("PROGBITS", "NOBITS") and "X" in words[6]:
            yield words[0], int(words[3], 16), int(words[4], 16)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    runs = read_runs(words[0], words[1])
    if not runs:
        sys.exit(f"{words[1]}.*: nothing of {words[0]} ran")
    if "--sections" in sys.argv:
        for name, offset, size in sections(words[0]):
            own = {byte: count for byte, count in runs.items() if offset <= byte < offset + size}
            if own:
                print(f"{name:24} {len(pages_of(own)):6} pages {len(own):8} bytes")
        return
    pages = pages_of(runs)
    lines = len({byte // LINE for byte in runs})
    print(f"{words[2] if len(words) > 2 else words[0]:28} {len(pages):7} {often(pages):7} {lines:7} {len(runs):9}")


if __name__ == "__main__":
    main()
