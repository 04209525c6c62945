/* Calls through a pointer that nearly always lead to one function, and now and then to another. It needs no library, so that few steps are its own. */
#define APART __attribute__((noipa))
/* A function whose first instruction may raise a signal stays, if its address is known. */
#define FIRST(x) __asm__ volatile("addl $1, %0" : "+r"(x))

struct thing {
    unsigned (*scale)(const struct thing *, unsigned);
    unsigned size;
};

APART static unsigned often(const struct thing *thing, unsigned x) {
    FIRST(x);
    if (x & 1)
        x = 3 * x + thing->size;
    return x ^ thing->size;
}

APART static unsigned seldom(const struct thing *thing, unsigned x) {
    FIRST(x);
    for (unsigned i = 0; i < 3; i++)
        x += x / 5 + thing->size;
    return x;
}

APART static unsigned work(const struct thing *thing, unsigned x) {
    unsigned first = thing->scale(thing, x);
    return first + (x & 3);
}

int main(void) {
    static struct thing things[2] = {{often, 5}, {seldom, 9}};
    unsigned sum = 1;
    for (unsigned i = 1; i < 200; i++)
        sum += work(&things[i % 25 == 0], i) ^ i;
    return sum & 0x7f;
}

void _start(void) {
    int result = main();
    __asm__ volatile("syscall" : : "a"(60), "D"(result));
    __builtin_unreachable();
}
