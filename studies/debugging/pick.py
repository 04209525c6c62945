#!/usr/bin/env python3
"""Picks instructions that stand in a program and in all of its outputs: `NUMBER ADDRESS` a line, into FOLDER/input and FOLDER/NAME.

    pick.py AFTERLINK NUMBER FOLDER INPUT NAME=OUTPUT …

At random, with a fixed seed, among the copied code of the first output: what it moved is what ran under its profile. A place counts only if a
disassembler (objdump) sees an instruction there in each file, and the same one, operands apart; so nothing is asked where code was replaced.
"""
import json
import random
import re
import subprocess
import sys


def instructions(path):
    """Mnemonics by address, padding left out."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-w", path], capture_output=True, text=True, check=True).stdout
    found = re.finditer(r"^ +([0-9a-f]+):\t(\S+)", text, re.M)
    return {int(m[1], 16): m[2] for m in found if m[2] not in ("nop", "nopw", "nopl", "int3", "cs", "data16", "xchg")}


def where(afterlink, output, addresses, *options):
    found = []
    for i in range(0, len(addresses), 2000):
        asked = [f"{a:#x}" for a in addresses[i:i + 2000]]
        said = subprocess.run([afterlink, "where", output, "--json", *options, *asked], capture_output=True, text=True, check=True).stdout
        found += json.loads(said)
    return found


def main():
    afterlink, number, folder, program = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    outputs = dict(pair.split("=", 1) for pair in sys.argv[5:])
    old = instructions(program)
    new = {name: instructions(path) for name, path in outputs.items()}
    first = next(iter(outputs))
    asked = sorted(new[first])
    random.Random(1).shuffle(asked)
    chosen = []
    for piece in where(afterlink, outputs[first], sorted(asked[:8 * number])):
        if piece["reason"] == "copied" and old.get(piece["input"]) == new[first][piece["output"]]:
            chosen.append([piece["input"], {first: piece["output"]}])
    for name in list(outputs)[1:]:
        by_input = {}
        for piece in where(afterlink, outputs[name], [at for at, _ in chosen], "--of-input"):
            if piece["reason"] == "copied":
                by_input.setdefault(piece["input"], piece["output"])
        for at, places in chosen:
            if at in by_input and new[name].get(by_input[at]) == old[at]:
                places[name] = by_input[at]
    chosen = [c for c in chosen if len(c[1]) == len(outputs)]
    random.Random(2).shuffle(chosen)
    chosen = chosen[:number]
    for name in ["input", *outputs]:
        with open(f"{folder}/{name}", "w") as file:
            for i, (at, places) in enumerate(chosen):
                file.write(f"{i} {at if name == 'input' else places[name]:#x}\n")
    print(f"{len(chosen)} places")


if __name__ == "__main__":
    main()
