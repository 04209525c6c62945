#!/usr/bin/env python3
"""How many of the registers that functions save were saved for nothing: the call that saved them did not write them.

    qemu-x86_64 -plugin ./trace.so,out=run PROGRAM …        (trace.c)
    saves.py run PROGRAM [--skip SHARE] [--blocks N]

Follows pushes and pops of callee-saved registers through N blocks of the run, from a share of it on. A pair of which nothing in between, in the same
call, writes the register was for nothing there: no pass that saves registers only on the paths that need them can take away more. Of these, apart: the call
made no call in between; and it did not use the stack pointer either, so that the pair can go without anything else changing.
"""

import argparse
import re
import struct
import subprocess
from bisect import bisect_right
from collections import Counter

SAVED = {"rbx": "rbx ebx bx bl bh", "rbp": "rbp ebp bp bpl"} | {f"r{n}": f"r{n} r{n}d r{n}w r{n}b" for n in range(12, 16)}
WHOLE = {f"%{part}": whole for whole, parts in SAVED.items() for part in parts.split()}
ONLY_READ = re.compile(r"(v?u?comis|cmp|test|bt[lqw]?$|push|j|call|nop|prefetch|ptest)")
EXCHANGES = ("xchg", "xadd")


def instructions(program):
    """What each does to callee-saved registers and the stack, by address."""
    text = subprocess.run(["objdump", "-d", "-w", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout
    found, function = {}, None
    for line in text.splitlines():
        if name := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            function = name[1]
        elif inst := re.match(r" *([0-9a-f]+):\t(?:(?:bnd|notrack|rep\w*|lock|data16|cs) )*(\S+) *([^<#]*)", line):
            found[int(inst[1], 16)] = (*effect(inst[2], inst[3].strip()), function)
    return found


def effect(name, operands):
    if name in ("push", "pop") and WHOLE.get(operands):
        return name, WHOLE[operands], False
    if name.startswith("call") or name.startswith("ret"):
        return name[:3], None, False
    last = re.split(r",(?![^(]*\))", operands)[-1]
    named = re.findall(r"%\w+", operands) if name.startswith(EXCHANGES) else [last]
    written = set() if ONLY_READ.match(name) else {WHOLE[register] for register in named if register in WHOLE}
    return "", written, "%rsp" in operands or name in ("push", "pop", "leave")


class Frames:
    """The calls that run, each with the registers that it has saved: which, whether written since, a call made, the stack pointer used, and by whom."""

    def __init__(self):
        self.calls, self.executed, self.pairs = [[]], 0, 0
        self.idle, self.of = Counter(), Counter()

    def step(self, what, detail, uses_stack, function):
        self.executed += 1
        saved = self.calls[-1]
        if what == "push":
            saved.append([detail, False, False, False, function])
        elif what == "pop":
            if saved and saved[-1][0] == detail:
                _, written, called, stack, saver = saved.pop()
                self.pairs += 1
                if not written:
                    self.idle[called, stack] += 1
                    self.of[saver] += 1
        elif what == "cal":
            for one in saved:
                one[2] = True
            self.calls.append([])
        elif what == "ret":
            self.calls.pop()
            self.calls = self.calls or [[]]
        else:
            for one in saved:
                one[1] |= one[0] in detail
                one[3] |= uses_stack

    def came_back(self):
        """From another object, into which the last call led."""
        if len(self.calls) > 1:
            self.calls.pop()


def blocks_of(trace, program):
    """Where each block starts and ends in the program, as offsets in its file; None of another object."""
    own = program.split("/")[-1]
    for line in open(f"{trace}.blocks"):
        path, start, size = line.rsplit(" ", 2)
        start = int(start, 16)
        yield (start, start + int(size, 16)) if path.split("/")[-1] == own else None


def segments(program):
    """Offsets, and how far addresses are from them."""
    text = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^ *LOAD +0x(\w+) 0x(\w+)", text, re.M)
    return sorted((int(offset, 16), int(address, 16) - int(offset, 16)) for offset, address in rows)


def follow(trace, program, skip, count):
    known = instructions(program)
    starts, loaded = sorted(known), segments(program)
    blocks, inside = list(blocks_of(trace, program)), {}

    def of_block(number):
        start, end = blocks[number]
        by = loaded[bisect_right(loaded, (start, 1 << 64)) - 1][1]
        first, behind = (bisect_right(starts, at + by - 1) for at in (start, end))
        return [known[at] for at in starts[first:behind]]

    with open(f"{trace}.trace", "rb") as file:
        total = file.seek(0, 2) // 4
        file.seek(int(total * skip) * 4)
        ran = struct.iter_unpack("<I", file.read(4 * count) if count else file.read())
        frames, away = Frames(), False
        for (number,) in ran:
            if blocks[number] is None:
                away = True
                continue
            if away:
                frames.came_back()
            away = False
            if number not in inside:
                inside[number] = of_block(number)
            for inst in inside[number]:
                frames.step(*inst)
    return frames


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("program")
    parser.add_argument("--skip", type=float, default=0.0)
    parser.add_argument("--blocks", type=int, default=1_000_000)
    options = parser.parse_args()
    frames = follow(options.trace, options.program, options.skip, options.blocks)

    def share(pairs):
        return f"{200 * pairs / max(frames.executed, 1):.2f} %"

    idle = sum(frames.idle.values())
    print(f"{frames.executed} instructions, {frames.pairs} registers saved and restored ({share(frames.pairs)} of all instructions)")
    print(f"for nothing: {idle} ({share(idle)}); without a call in between {share(sum(n for (called, _), n in frames.idle.items() if not called))}; "
          f"nor any use of the stack pointer {share(frames.idle[False, False])}")
    for function, pairs in frames.of.most_common(10):
        print(f"{share(pairs):>8}  {function}")


if __name__ == "__main__":
    main()
