#!/usr/bin/env python3
"""Says 20,000 commands to a memcached behind the socket argv[1], one after the other, prints a sum of the answers and ends the server."""
import os
import socket
import sys
import time
import zlib

# Nothing expires: `mg` tells what is left of the time.
# Fewer: sets and gets alone.
KINDS = int(os.environ.get("KINDS", 20))
state = 12345


def below(limit):
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % limit


def connect(path):
    for _ in range(600):
        try:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            return connection
        except OSError:
            time.sleep(0.1)
    sys.exit(f"memcached.py: nobody behind {path}")


def command():
    kind, key, value = below(KINDS), f"key{below(700)}", "v" * (1 + below(400))
    if kind < 5:
        return f"set {key} {below(9)} 0 {len(value)}\r\n{value}\r\n"
    if kind < 12:
        return f"get {key}\r\n" if kind < 10 else f"get {key} key{below(700)} key{below(700)}\r\n"
    if kind < 14:
        return f"set n{below(50)} 0 0 2\r\n{10 + below(90)}\r\n" if kind < 13 else f"incr n{below(50)} {below(9)}\r\n"
    if kind < 16:
        return f"{'append' if kind < 15 else 'add'} {key} 0 0 3\r\nabc\r\n"
    return (f"delete {key}\r\n", f"touch {key} 0\r\n", f"gets {key}\r\n", f"mg {key} v f t\r\n")[kind - 16]


def answer(stream):
    lines = []
    while True:
        line = stream.readline()
        lines.append(line)
        if line.startswith((b"VALUE ", b"VA ")):
            size = int(line.split()[3 if line.startswith(b"VALUE ") else 1])
            lines.append(stream.read(size + 2))
            if line.startswith(b"VALUE "):
                continue
        return b"".join(lines)


connection = connect(sys.argv[1])
stream = connection.makefile("rb")
total = 0
for _ in range(20000):
    connection.sendall(command().encode())
    total = zlib.crc32(answer(stream), total)
connection.sendall(b"shutdown\r\n")
print(total)
