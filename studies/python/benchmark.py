"""Pure Python with a fixed amount of work, and one number at the end that depends on all of it."""


def primes(limit):
    sieve = bytearray([1]) * limit
    for i in range(2, int(limit**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(range(i * i, limit, i)))
    return sum(i for i in range(2, limit) if sieve[i])


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    @property
    def length(self):
        return (self.x * self.x + self.y * self.y) ** 0.5


def objects(n):
    total = Vector(0.0, 0.0)
    for i in range(n):
        total = total + Vector(i * 0.5, -i * 0.25)
    return round(total.length)


def tree(depth):
    return (tree(depth - 1), tree(depth - 1)) if depth else ()


def walk(node):
    if node:
        yield from walk(node[0])
        yield 1
        yield from walk(node[1])


def words(n):
    counts = {}
    for i in range(n):
        word = f"w{(i * 7919) % 997:03d}".upper().replace("W", "x")
        counts[word] = counts.get(word, 0) + len(word)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[7]


def exceptions(n):
    caught = 0
    for i in range(n):
        try:
            if i % 3 == 0:
                raise ValueError(i)
            [][i]
        except ValueError as error:
            caught += error.args[0] & 1
        except IndexError:
            caught += 2
        finally:
            caught += 1
    return caught


def closures(n):
    def compose(f, g):
        return lambda *args, **kwargs: f(g(*args, **kwargs))

    f = compose(str, compose(abs, lambda x, y=1: x * y - 3))
    return sum(len(f(i, y=i & 7)) for i in range(n))


def queens(n, row=0, columns=frozenset(), up=frozenset(), down=frozenset()):
    if row == n:
        return 1
    found = 0
    for column in range(n):
        if column not in columns and row + column not in up and row - column not in down:
            found += queens(n, row + 1, columns | {column}, up | {row + column}, down | {row - column})
    return found


def main():
    seen = [
        primes(40_000),
        objects(12_000),
        sum(walk(tree(10))),
        words(12_000),
        exceptions(9_000),
        closures(9_000),
        queens(6),
        sum(pow(3, i, 1_000_003) for i in range(4_000)),
        hash(tuple(sorted(str(i * i % 1009) for i in range(5_000)))) & 0xFFFF,
    ]
    print(*seen)


main()
