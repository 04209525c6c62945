#!/usr/bin/env python3
"""Holds what gdb said of an output against what it said of the program, place by place, addresses apart.

    compare_said.py PLAIN PLAIN-AGAIN OUTPUT [LISTED]

The program is run twice, the second time with its memory elsewhere (ELSEWHERE): what differs between its own two runs (times, numbers of
processes, what is not initialized) is left out, line by line, and the lines that are left are counted.
A line in which a value is optimized out on one side only is counted apart: gdb 13 finds a call's target by its lowest address, so what it makes of
entry values depends on where a function's parts lie, in compilers' output as well.
Exits non-zero on any other difference.
"""
import collections
import json
import re
import sys


def read(path):
    found, tails = collections.defaultdict(list), 0
    for line in open(path):
        said = json.loads(line)
        found[str(said["at"])].append(said["text"])
        tails += said.get("tails", 0)
    return found, tails


def bare(text):
    # Where code is, and where gdb says so (it does in the middle of a row); names of parts; where memory is, and hashes of that.
    text = re.sub(r"(^#\d* +|^)0x[0-9a-f]+ in ", r"\1", text, flags=re.M)
    text = re.sub(r"0x[0-9a-f]{5,}", "0x…", text)
    text = re.sub(r"\.(cold|warm|rest|inlined)(?=[ >+@(]|$)", "", text, flags=re.M)
    text = re.sub(r"\+\d+>", ">", text)
    text = re.sub(r"nsec = \d+", "nsec = …", text)
    # What a pointer that is not initialized leads to: pointers, or pieces of them, read as text.
    text = re.sub(r'(0x…|=) <?"(?:[^"\\]|\\.)*(?:UUU|\\\d\d\d|[^\x00-\x7f])(?:[^"\\]|\\.)*"(\.\.\.)?', r"\1 …", text)
    text = re.sub(r"<incomplete sequence [^>]*>|'[^']' <repeats \d+ times>", "…", text)
    text = re.sub(r"'\\\d+'( <repeats \d+ times>)?,? ?", "…", text)
    text = re.sub(r"-?\b\d{9,}\b", "…", text)  # addresses, or halves of them, in what is not initialized
    return re.sub(r"^Breakpoint \d+|^Hardware watchpoint \d+|Thread \d+\.\d+|LWP \d+", "…", text, flags=re.M).splitlines()


OUT = "<optimized out>"


def tells_less(less, more):
    """Whether one line is the other, with some values optimized out."""
    if OUT not in less or less == more:
        return False
    parts = [re.escape(part) for part in less.split(OUT)]
    return re.fullmatch(".*?".join(parts), more) is not None


def main():
    (plain, tails), (again, _), (output, output_tails) = (read(path) for path in sys.argv[1:4])
    listed = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    same = different = unsteady = missing = lines = frames = 0
    optimized_out = lost = gained = 0
    for at in plain:
        texts = [bare("\n".join(which[at])) if at in which else None for which in (plain, again, output)]
        if texts[1] is None or len(texts[0]) != len(texts[1]):
            unsteady += 1
            continue
        if texts[2] is None:
            missing += 1
            if missing <= listed:
                print(f"  {at}: not said of the output; of the program: {str(texts[0][:2])[:300]}")
            continue
        steady = [i for i, (a, b) in enumerate(zip(texts[0], texts[1])) if a == b]
        lines += len(steady)
        unsteady_lines = len(texts[0]) - len(steady)
        frames += sum(texts[0][i].startswith("#") for i in steady)
        optimized_out += sum("<optimized out>" in texts[0][i] for i in steady)
        found = []
        for i in steady:
            if i >= len(texts[2]):
                found.append(i)
            elif tells_less(texts[2][i], texts[0][i]):
                lost += 1
            elif tells_less(texts[0][i], texts[2][i]):
                gained += 1
            elif texts[2][i] != texts[0][i]:
                found.append(i)
        if len(texts[2]) != len(texts[0]) and not found and not unsteady_lines:
            found = [min(len(texts[2]), len(texts[0])) - 1]
        if not found:
            same += 1
            continue
        different += 1
        if different <= listed:
            i = found[0]
            print(f"  {at}, line {i}:\n    - {texts[0][i][:300]}\n    + {texts[2][i][:300] if i < len(texts[2]) else '(ends)'}")
    extra = sum(at not in plain for at in output)
    print(json.dumps({"same": same, "different": different, "missing": missing, "extra": extra, "unsteady": unsteady,
                      "lines": lines, "frames": frames, "optimized_out": optimized_out, "tells_less": lost, "tells_more": gained, "tail_frames": tails, "output_tail_frames": output_tails}))
    return 1 if different or missing or not same else 0


sys.exit(main())
