#!/usr/bin/env python3
"""Which physical pages the code of a program gets: the same copy run after run, and a fresh copy for each run.

    sudo ./pages.py PROGRAM [RUNS]     (the kernel shows page numbers to root alone)

The file is mapped as a run would map it, each time by a new process. Printed is the share of its pages that lie where they lay
in the run before.
"""
import mmap
import os
import shutil
import struct
import sys

PAGE = mmap.PAGESIZE


def frames(path):
    """The physical page of each page of the file, as a process of its own sees them."""
    read, write = os.pipe()
    if os.fork() == 0:
        with open(path, "rb") as file, open("/proc/self/pagemap", "rb", buffering=0) as pages:
            size = os.fstat(file.fileno()).st_size
            view = mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE)
            start = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if path in line)
            found = []
            for offset in range(0, size, PAGE):
                view[offset]
                pages.seek((start + offset) // PAGE * 8)
                found.append(struct.unpack("Q", pages.read(8))[0] & ((1 << 55) - 1))
        os.write(write, struct.pack(f"{len(found)}Q", *found))
        os._exit(0)
    os.close(write)
    data = b""
    while part := os.read(read, 1 << 16):
        data += part
    os.close(read)
    os.wait()
    return struct.unpack(f"{len(data) // 8}Q", data)


def main():
    program, runs = os.path.realpath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    for fresh in (False, True):
        copy = os.path.realpath("pages-copy")
        before, same = None, []
        for run in range(runs):
            if fresh or run == 0:
                if os.path.exists(copy):
                    os.rename(copy, copy + ".old")
                shutil.copyfile(program, copy)
                if os.path.exists(copy + ".old"):
                    os.remove(copy + ".old")
            found = frames(copy)
            if not any(found):
                sys.exit("the kernel does not show page numbers: run it as root")
            if before:
                same.append(sum(a == b for a, b in zip(before, found)) / len(found))
            before = found
        os.remove(copy)
        print(f"{'a fresh copy for each run' if fresh else 'the same copy in all runs'}: {100 * sum(same) / len(same):.0f} % of "
              f"{len(found)} pages where they lay before")


main()
