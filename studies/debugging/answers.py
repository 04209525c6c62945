#!/usr/bin/env python3
"""Asks symbolizers of the same instructions in a program, in what afterlink made of it, and in what BOLT made of it.

    answers.py AFTERLINK NUMBER PROGRAM OUTPUT [BOLTED]

The instructions are those that both tools moved and whose place both tell (`afterlink where`, BOLT's `--enable-bat`), and where a disassembler
sees the same instruction in all three files. A sample is taken with a fixed seed. Without BOLTED they are those that afterlink moved, and only
llvm-symbolizer is asked: addr2line 2.40 knows nothing of files with entries apart.
"""
import collections
import json
import random
import subprocess
import sys

import bat
from pick import instructions, where


def follow(found, old, new):
    """More pairs: instructions behind each pair, as long as they are the same."""
    order_old, order_new = sorted(old), sorted(new)
    index_old = {a: i for i, a in enumerate(order_old)}
    index_new = {a: i for i, a in enumerate(order_new)}
    known_old = {a for a, _ in found}
    pairs = {}
    for a, b in found:
        while a in index_old and b in index_new and old[a] == new[b]:
            pairs.setdefault(a, b)
            i, j = index_old[a] + 1, index_new[b] + 1
            if i == len(order_old) or j == len(order_new) or order_old[i] - a != order_new[j] - b:
                break
            a, b = order_old[i], order_new[j]
            if a in known_old:
                break
    return pairs


def ask(tool, program, addresses):
    text = "".join(f"{a:#x}\n" for a in addresses)
    command = {"llvm-symbolizer-22": ["--inlines", "--functions=short", "-e"], "addr2line": ["-a", "-f", "-i", "-e"]}[tool]
    said = subprocess.run([tool, *command, program], input=text, capture_output=True, text=True, check=True).stdout
    if tool == "addr2line":
        answers = []
        for line in said.splitlines():
            if line.startswith("0x"):
                answers.append("")
            else:
                answers[-1] += line + "\n"
    else:
        answers = said.split("\n\n")[:len(addresses)]
    assert len(answers) == len(addresses)
    return [a.strip() for a in answers]


def kind(old, new):
    """What is another: how many calls were inlined, a line (or file, or column), a name in debug information, or what symbols alone say."""
    if old == new:
        return "same"
    a, b = old.splitlines(), new.splitlines()
    if b[-1].startswith("??") and not a[-1].startswith("??"):
        return "nothing is known"
    if len(a) != len(b):
        return "lines or calls"
    if a[1::2] != b[1::2]:
        return "lines or calls"
    bare = lambda name: name.split(".")[0]
    if [bare(n) for n in a[0::2]] == [bare(n) for n in b[0::2]]:
        return "part of a name"
    return "name by symbol" if all(x == y or bare(y) == bare(b[-2]) or bare(x) == bare(a[-2]) for x, y in zip(a[0::2], b[0::2])) else "name"


def main():
    afterlink, number, program, output = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]
    bolted = sys.argv[5] if len(sys.argv) > 5 else None
    old, own_code = instructions(program), instructions(output)
    by_bolt = follow(bat.pairs(program, bolted), old, instructions(bolted)) if bolted else dict.fromkeys(old)
    asked = sorted(by_bolt)
    random.Random(3).shuffle(asked)
    places = []
    for piece in where(afterlink, output, asked[:4 * number], "--of-input"):
        at = piece.get("input")
        is_moved = bolted or piece["output"] != at
        if piece["reason"] == "copied" and is_moved and at in by_bolt and own_code.get(piece["output"]) == old[at]:
            places.append((at, piece["output"], by_bolt[at]))
    places = places[:number]
    print(f"{len(places)} places of {len(by_bolt)}" + (" that BOLT's table leads to" if bolted else ""))
    outputs = [("afterlink", output, 1)] + ([("llvm-bolt", bolted, 2)] if bolted else [])
    for tool in ("llvm-symbolizer-22", "addr2line") if bolted else ("llvm-symbolizer-22",):
        expected = ask(tool, program, [p[0] for p in places])
        for name, file, column in outputs:
            answers = ask(tool, file, [p[column] for p in places])
            kinds = collections.Counter(kind(a, b) for a, b in zip(expected, answers))
            print(json.dumps({"tool": tool, "output": name, **kinds}))
            for i, (a, b) in enumerate(zip(expected, answers)):
                if kind(a, b) in ("lines or calls", "name", "nothing is known"):
                    print(f"  {places[i][0]:#x} {a[:200]!r}\n  {places[i][column]:#x} {b[:200]!r}")
                    break


if __name__ == "__main__":
    main()
