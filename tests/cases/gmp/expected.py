"""What the case has to print: python3 expected.py"""
import math
import sys

PRIME = 1000003


def number(bits, seed):
    result = seed
    while result.bit_length() < bits:
        result = result * 6364136223846793005 + seed
    return result % (1 << bits)


def show(name, bits, result):
    print(name, bits, result % PRIME)


bits = 40
while bits < 60000:
    a, b = number(bits, 7), number(bits // 2 + 9, 11)
    show("product", bits, a * b)
    show("square", bits, a * a)
    c, d = divmod(a * b + a * a - b, b)
    show("quotient", bits, c)
    show("remainder", bits, d)
    c = (a >> 13) << 37
    show("shifted", bits, c)
    show("common", bits, math.gcd(c, b))
    show("root", bits, math.isqrt(a))
    if bits < 4000:
        show("power", bits, pow(a, c, b | 1))
    print("bits", a.bit_count())
    bits = bits * 13 // 8
sys.set_int_max_str_digits(0)
a = 3**20000
print(str(a)[:60], math.factorial(5000) % a % PRIME)
