"""What the case has to print, worked out without OpenSSL's code where it counts: python3 expected.py"""
import hashlib

SIZE = 10000
text = bytes((i * i + i // 7 + 1) & 255 for i in range(SIZE))
key = bytes(i * 3 & 255 for i in range(64))
nonce = bytes([1, 0, 0, 0, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37])


def aes_box():
    box, p, q = [0] * 256, 1, 1
    while True:
        p ^= p << 1 & 255 ^ (0x1B if p & 128 else 0)
        for shift in 1, 2, 4:
            q ^= q << shift & 255
        q ^= 9 if q & 128 else 0
        box[p] = q ^ 0x63
        for turn in 1, 2, 3, 4:
            box[p] ^= (q << turn | q >> 8 - turn) & 255
        if p == 1:
            box[0] = 0x63
            return box


BOX = aes_box()


def double(x):
    return x << 1 & 255 ^ (0x1B if x & 128 else 0)


def aes_keys(secret):
    words, constant, count = [list(secret[i : i + 4]) for i in range(0, len(secret), 4)], 1, len(secret) // 4
    for i in range(count, 4 * (count + 7)):
        word = words[-1]
        if i % count == 0:
            word = [BOX[b] for b in word[1:] + word[:1]]
            word[0] ^= constant
            constant = double(constant)
        elif count > 6 and i % count == 4:
            word = [BOX[b] for b in word]
        words.append([a ^ b for a, b in zip(words[i - count], word)])
    flat = sum(words, [])
    return [flat[i : i + 16] for i in range(0, len(flat), 16)]


def aes(block, keys):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number, round_key in enumerate(keys[1:], 1):
        state = [BOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number + 1 < len(keys):
            mixed = []
            for c in range(0, 16, 4):
                column = state[c : c + 4]
                every = column[0] ^ column[1] ^ column[2] ^ column[3]
                mixed += [column[i] ^ every ^ double(column[i] ^ column[(i + 1) % 4]) for i in range(4)]
            state = mixed
        state = [a ^ b for a, b in zip(state, round_key)]
    return bytes(state)


def stream(blocks):
    return bytes(a ^ b for a, b in zip(text, blocks))


def aes_ctr():
    keys, start = aes_keys(key[:32]), int.from_bytes(nonce, "big")
    blocks = (aes((start + i).to_bytes(16, "big"), keys) for i in range((SIZE + 15) // 16))
    return stream(b"".join(blocks))


def chacha_block(number):
    words = [int.from_bytes(b"expand 32-byte k"[i : i + 4], "little") for i in range(0, 16, 4)]
    words += [int.from_bytes(key[i : i + 4], "little") for i in range(0, 32, 4)]
    rest = [int.from_bytes(nonce[i : i + 4], "little") for i in range(0, 16, 4)]
    rest[0] += number
    words += rest
    x = words[:]

    def quarter(a, b, c, d):
        for to, add, by, turn in (a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7):
            x[to] = x[to] + x[add] & 0xFFFFFFFF
            x[by] ^= x[to]
            x[by] = (x[by] << turn | x[by] >> 32 - turn) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return b"".join((a + b & 0xFFFFFFFF).to_bytes(4, "little") for a, b in zip(x, words))


def chacha():
    return stream(b"".join(chacha_block(i) for i in range((SIZE + 63) // 64)))


# Prime, a, and the base point (SEC 2).
CURVES = [
    (
        0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF,
        -3,
        0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
        0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
    ),
    (
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFFFF0000000000000000FFFFFFFF,
        -3,
        0xAA87CA22BE8B05378EB1C71EF320AD746E1D3B628BA79B9859F741E082542A385502F25DBF55296C3A545E3872760AB7,
        0x3617DE4A96262C6F5D9E98BF9292DC29F8F41DBD289A147CE9DA3113B5F0B8C00A60B1CE1D7E819D7A431D7C90EA0E5F,
    ),
    (
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFC2F,
        0,
        0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
        0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
    ),
]


def add(p, q, prime, a):
    if p is None or q is None:
        return p or q
    if p == q:
        slope = (3 * p[0] ** 2 + a) * pow(2 * p[1], -1, prime)
    else:
        slope = (q[1] - p[1]) * pow(q[0] - p[0], -1, prime)
    x = (slope**2 - p[0] - q[0]) % prime
    return x, (slope * (p[0] - x) - p[1]) % prime


def multiply(factor, point, prime, a):
    result = None
    while factor:
        if factor & 1:
            result = add(result, point, prime, a)
        point = add(point, point, prime, a)
        factor >>= 1
    return result


def print_number(name, number):
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    print(name, hashlib.sha256(data).hexdigest())


for name in "MD5 SHA1 SHA224 SHA256 SHA384 SHA512 SHA3-256 BLAKE2B512 BLAKE2S256".split():
    python = {"SHA3-256": "sha3_256", "BLAKE2B512": "blake2b", "BLAKE2S256": "blake2s"}.get(name, name.lower())
    for length in range(SIZE, 0, -4321):
        print(name, hashlib.new(python, text[:length]).hexdigest())
for name in "AES-128-CBC AES-256-CTR AES-256-GCM AES-128-OCB ChaCha20 ChaCha20-Poly1305 CAMELLIA-128-CBC".split():
    by = {"AES-256-CTR": aes_ctr, "ChaCha20": chacha}.get(name)
    if by:
        print(name, hashlib.sha256(by()).hexdigest())
    print(name, "decrypts")
for size in 64, 128, 256, 512:
    base, power, modulus = (int.from_bytes(text[at : at + size], "big") for at in (0, 600, 1300))
    result = pow(base, power, modulus | 1 | 1 << size * 8 - 1)
    print_number("power", result)
    print_number("power in constant time", result)
for prime, a, x, y in CURVES:
    factor = int.from_bytes(text[33:64], "big")
    print_number("point", multiply(factor, multiply(factor, (x, y), prime, a), prime, a)[0])
