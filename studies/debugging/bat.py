"""BOLT's own table of where code went (`--enable-bat`), as pairs of addresses: input and output of each block and branch."""
import re
import subprocess


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        start = self.at
        value = self.number()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def skip(self, count):
        self.at += count


def symbols(path):
    text = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    return [(int(m[1], 16), m[2]) for m in re.finditer(r"^ +\d+: ([0-9a-f]+) +\S+ FUNC +\S+ +\S+ +[0-9]+ (\S+)", text, re.M)]


def pairs(program, output):
    """Of each function whose symbol is in both files."""
    data = subprocess.run(["objcopy", "-O", "binary", "--only-section=.note.bolt_bat", "--set-section-flags", ".note.bolt_bat=alloc", output,
                           "/dev/stdout"], capture_output=True, check=True).stdout
    reader = Reader(data)
    reader.skip(12 + 8)  # the head of the note and "BOLT"
    inputs, ambiguous = {}, set()
    for address, name in symbols(program):
        if inputs.setdefault(name, address) != address:
            ambiguous.add(name)
    names = {}
    for address, name in symbols(output):
        names.setdefault(address, []).append(name)
    found, hot = [], []
    for is_cold in (False, True):
        previous = index = 0
        for _ in range(reader.number()):
            address = previous = previous + reader.number()
            entry = address
            skew = 0
            if is_cold:
                index += reader.number()
                entry = hot[index]
                skew = reader.number()
            else:
                hot.append(address)
                reader.skip(8)
                reader.number()
                secondary = reader.number()
            entries = reader.number()
            equal = reader.number()
            mask = int.from_bytes(reader.data[reader.at:reader.at + (equal + 7) // 8], "little")
            reader.skip((equal + 7) // 8)
            own = [inputs[n] for n in names.get(entry, []) if n in inputs and n not in ambiguous]
            offset = 0
            for i in range(entries):
                previous += reader.number()
                if i < equal:
                    offset = (previous - address + skew) << 1 | mask >> i & 1
                else:
                    offset += reader.signed()
                if offset & 1 == 0:
                    reader.skip(8)
                    reader.number()
                if own:
                    found.append((own[0] + (offset >> 1), previous))
            if not is_cold:
                for _ in range(secondary):
                    reader.number()
    return found
