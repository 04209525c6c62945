#!/usr/bin/env python3
"""What `llvm-dwarfdump --verify` complains of in an output, and not in the program: complaints are told apart by their text and the entry that they
are about, addresses apart; a list of locations that was cut repeats a complaint about its expression.

    complaints.py PLAIN OUTPUT      (what it printed for each)
"""
import re
import sys


def read(path):
    found, text = set(), None
    count = 0
    for line in open(path, errors="replace"):
        if line.startswith(("error:", "warning:")):
            if text:
                found.add((text, ""))
            text = re.sub(r"0x[0-9a-f]+|occurred \d+", "…", line.strip())
            count += 1
        elif text and re.match(r"^\s*0x[0-9a-f]+: DW_TAG", line):
            found.add((text, line.strip().split()[0]))
            text = None
    if text:
        found.add((text, ""))
    return found, count


def main():
    (old, old_count), (new, new_count) = read(sys.argv[1]), read(sys.argv[2])
    fresh = sorted(new - old)
    print(f"complaints {old_count} then {new_count}, different ones {len(old)} then {len(new)}, new {len(fresh)}, gone {len(old - new)}")
    for text, entry in fresh[:10]:
        print(f"  {entry} {text}")
    return 1 if fresh else 0


sys.exit(main())
