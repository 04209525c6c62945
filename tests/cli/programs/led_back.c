/* Loops, a switch, calls, code that never runs, and functions that are alike: enough for an optimizer to turn branches round, to
   drop jumps and to add some, and to take functions apart. It needs no library, so that few steps are its own. */
#define APART __attribute__((noipa))

static volatile unsigned failures;

APART static unsigned mixed(unsigned x) {
    switch (x & 7) {
    case 0: return x * 3;
    case 1: return x ^ 0x55;
    case 2: return x - 7;
    case 3: return x << 2;
    case 4: return x + failures;
    case 5: return ~x;
    case 6: return x / 3;
    default: return x | 1;
    }
}

APART static unsigned checked(unsigned x) {
    if (x == 0xffffffff) {
        failures++;
        __builtin_trap();
    }
    return x % 5 == 0 ? x + 1 : x - 1;
}

APART unsigned alike(unsigned x) { return x * 17 + 4; }
APART unsigned alike_too(unsigned x) { return x * 17 + 4; }

APART static unsigned collatz(unsigned x) {
    unsigned steps = 0;
    while (x != 1 && steps < 60) {
        if (x & 1)
            x = 3 * x + 1;
        else
            x /= 2;
        steps++;
    }
    return steps;
}

APART static unsigned (*chosen(unsigned x))(unsigned) { return x & 4 ? alike : checked; }

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 1; i < 60; i++) {
        sum += mixed(i);
        sum += checked(i);
        if (i % 3)
            sum += collatz(i);
        else
            sum += alike(i) - alike_too(i + 1);
        sum ^= chosen(i)(i);
        if (sum == 12345 && failures)
            failures--;
    }
    return sum & 0x7f;
}

void _start(void) {
    int result = main();
    __asm__ volatile("syscall" : : "a"(60), "D"(result));
    __builtin_unreachable();
}
