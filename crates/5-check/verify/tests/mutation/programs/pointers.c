/* Functions that are called through pointers, from memory and from registers, with frames and without: for code in place of such calls. */
#include <stdio.h>
#include <stdlib.h>

#define OWN __attribute__((noinline, noclone, noipa))

struct thing;
struct kind {
    long (*weigh)(const struct thing *, long);
    long (*turn)(struct thing *, long);
    void (*note)(const struct thing *, const char *);
};
struct thing {
    const struct kind *kind;
    long size, turns;
};

static long total;

OWN static long add(long a, long b) {
    total += a;
    return a + b;
}

OWN static long light(const struct thing *thing, long n) { return thing->size * n + 1; }

OWN static long heavy(const struct thing *thing, long n) {
    if (n < 0) return add(n, 1);
    return add(thing->size, n) + add(n, 7);
}

OWN static long left(struct thing *thing, long n) {
    thing->turns += n;
    return thing->turns;
}

OWN static long right(struct thing *thing, long n) {
    long text[5];
    for (int i = 0; i < 5; i++) text[i] = n * i;
    thing->turns -= text[n % 5 < 0 ? 0 : n % 5];
    return add(thing->turns, text[2]);
}

OWN static void loud(const struct thing *thing, const char *what) { printf("%s %ld\n", what, thing->size); }

OWN static void silent(const struct thing *thing, const char *what) { total ^= thing->size + what[0]; }

static const struct kind kinds[2] = {{light, left, silent}, {heavy, right, loud}};

OWN static long weight(const struct thing *thing, long n) {
    long all = thing->kind->weigh(thing, n);
    return 3 * all + n;
}

OWN static long turned(struct thing *thing, long n) {
    long first = thing->kind->turn(thing, n), second = thing->kind->turn(thing, first & 3);
    return first ^ second;
}

OWN static long both(long (*one)(const struct thing *, long), struct thing *thing, long n) {
    long sum = one(thing, n);
    if (sum > 40) thing->kind->note(thing, "above");
    return sum + one(thing, n - 2);
}

int main(int argc, char **argv) {
    (void)argv;
    struct thing things[2] = {{&kinds[0], 4 + argc, 0}, {&kinds[1], 9, 1}};
    long sum = 0;
    for (long i = -3; i < 40; i++) {
        struct thing *thing = &things[i % 7 == 0];
        sum += weight(thing, i);
        sum ^= turned(thing, i & 7);
        sum += both(thing->kind->weigh, thing, i & 15);
    }
    printf("%ld %ld\n", sum, total);
    return 0;
}
