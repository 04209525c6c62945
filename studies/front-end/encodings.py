#!/usr/bin/env python3
"""How many bytes an assembler would save in a program's hot code by shorter encodings: its instructions are disassembled, and assembled again for size.

    encodings.py PROGRAM …     of each: bytes and instructions of .text, those that were tried, and the bytes that are saved; then the nops

Jumps, calls, returns, nops and operands that count from the instruction are left out: what they need depends on where things stand. Wants binutils.
"""

import re
import subprocess
import sys
import tempfile

ROW = re.compile(r"\s+([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(.*)$")
LEFT_OUT = re.compile(r"(j|call|loop|xbegin|ret|nop|data16|cs |xchg|ud2|rep|lock|notrack|bnd|\(bad\)|$)")
NOP = re.compile(r"(nop|data16|cs nop|xchg +%ax,%ax)")


def instructions(path, section):
    """Bytes and text of each instruction."""
    listing = subprocess.run(["objdump", "-dw", "-j", section, path], capture_output=True, text=True, check=True)
    rows = (ROW.match(line) for line in listing.stdout.splitlines())
    return [(len(row[2].split()), row[3].split("#")[0].split("<")[0].strip()) for row in rows if row]


def assembled(texts):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/code.s", "w") as source:
            source.write("\n".join([".text", *texts, ""]))
        subprocess.run(["as", "-Os", "-o", f"{folder}/code.o", f"{folder}/code.s"], check=True)
        return instructions(f"{folder}/code.o", ".text")


def tell(path):
    rows = instructions(path, ".text")
    tried = [(size, text) for size, text in rows if not LEFT_OUT.match(text) and "%rip" not in text]
    again = assembled([text for _, text in tried])
    if len(again) != len(tried):
        sys.exit(f"{path}: {len(tried)} instructions became {len(again)}")
    saved = [(size - new, text) for (size, text), (new, _) in zip(tried, again) if new < size]
    nops = sum(size for size, text in rows if NOP.match(text))
    total = sum(size for size, _ in rows)
    print(f"{path}: {total} bytes, {len(rows)} instructions, {len(tried)} tried, {sum(n for n, _ in saved)} bytes saved, {nops} bytes of nops")
    for bytes_saved, text in saved[:10]:
        print(f"    {bytes_saved}  {text}")


for name in sys.argv[1:] or sys.exit(__doc__):
    tell(name)
