/* CPython, whose evaluation loop jumps through a table of labels, with a script that goes through much of it. */
#include <Python.h>
#include <stdio.h>

static const char script[] =
    "import collections, decimal, functools, itertools, json, re, struct, zlib\n"
    "numbers = [i * 7919 % 1009 for i in range(300)]\n"
    "table = {str(i): [n / 8, i, {'x': n % 7}] for i, n in enumerate(numbers)}\n"
    "text = json.dumps(table, sort_keys=True)\n"
    "assert json.loads(text) == table\n"
    "print(len(text), zlib.crc32(text.encode()), collections.Counter(re.findall(r'[.](\\d)', text)).most_common(2))\n"
    "print(decimal.Decimal(2).sqrt(decimal.Context(prec=40)), sum(map(int, str(3**2000))))\n"
    "def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n"
    "print(fibonacci(17), functools.reduce(lambda a, b: a * b % 1000003, range(1, 300)))\n"
    "class Item:\n"
    "    __slots__ = ('value',)\n"
    "    def __init__(self, value): self.value = value\n"
    "    def __lt__(self, other): return self.value < other.value\n"
    "print([item.value for item in sorted(map(Item, numbers))[:6]], list(itertools.permutations('abc'))[3])\n"
    "def generate():\n"
    "    try:\n"
    "        while True: print('sent', (yield), end=' ')\n"
    "    finally: print('closed')\n"
    "generator = generate(); next(generator); generator.send(1); generator.send('b'); generator.close()\n"
    "try: {}['missing']\n"
    "except KeyError as error: print(repr(error), f'{3.14159:>8.2f}', struct.pack('>hI', -2, 7).hex())\n"
    "match {'kind': 'pair', 'of': (1, 2)}:\n"
    "    case {'kind': 'pair', 'of': (a, b)}: print(a + b, [*range(3), *{5}], 7 // -2, -7 % 3, 2**100)\n";

int main(int count, char **arguments) {
    (void)count;
    char *all[] = {arguments[0], "-IBS", "-c", (char *)script, NULL};
    return Py_BytesMain(4, all);
}
