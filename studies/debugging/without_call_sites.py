#!/usr/bin/env python3
"""Copies a program with another tag in place of DW_TAG_call_site: llvm-dwarfdump 22 goes round for ever on a call site below a lexical block,
as g++ writes them in DWARF 5. All else that it verifies stays.

    without_call_sites.py PROGRAM COPY
"""
import subprocess
import sys
import tempfile

CALL_SITE, UNUSED = 0x48, 0x7E
IMPLICIT_CONST = 0x21


def skip_number(data, at):
    while data[at] & 0x80:
        at += 1
    return at + 1


def main():
    program, copy = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        section = f"{folder}/abbrev"
        subprocess.run(["objcopy", f"--dump-section=.debug_abbrev={section}", program, f"{folder}/unused"], check=True)
        data = bytearray(open(section, "rb").read())
        at = changed = 0
        while at < len(data):
            if data[at] == 0:
                at += 1
                continue
            at = skip_number(data, at)
            if data[at] == CALL_SITE:
                data[at] = UNUSED
                changed += 1
            at = skip_number(data, at) + 1
            while True:
                attribute, form_at = data[at], skip_number(data, at)
                form, at = data[form_at], skip_number(data, form_at)
                if form == IMPLICIT_CONST:
                    at = skip_number(data, at)
                if attribute == 0 and form == 0:
                    break
        open(section, "wb").write(data)
        subprocess.run(["objcopy", f"--update-section=.debug_abbrev={section}", program, copy], check=True)
    print(f"{changed} kinds of call sites hidden")


main()
