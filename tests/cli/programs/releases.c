// Two releases of a program: the second (-DSECOND) has a function with another name, one with more cases, one that it lacked, and a check in front of
// a loop. Both do the same.
#include <stdio.h>
#include <string.h>
#define NOINLINE __attribute__((noinline, noclone))

static unsigned state = 12345;

static unsigned next_random(void) {
    state = state * 1103515245u + 12345u;
    return state >> 16;
}

#ifdef SECOND
#define FOLD fold_words
NOINLINE static unsigned checked(unsigned value) {
    if (value > 1000000) {
        printf("large: %u\n", value);
        return value % 1000000;
    }
    return value ^ 1;
}
#else
#define FOLD sum_of_words
#endif

// Nothing but its name changes.
NOINLINE static unsigned FOLD(const char *text) {
    unsigned sum = 0, words = 0;
    for (int i = 0; text[i]; i++) {
        if (text[i] == ' ') {
            words++;
            sum = sum * 31 + words;
        } else if (text[i] >= '0' && text[i] <= '9') {
            sum = sum * 10 + (text[i] - '0');
        } else {
            sum ^= text[i] << (i & 7);
        }
    }
    return sum + words;
}

NOINLINE static int classify(unsigned value, char *out, size_t room) {
#ifdef SECOND
    if (room < 16 || !out) {
        fprintf(stderr, "no room: %zu\n", room);
        return -1;
    }
#endif
    int seen = 0;
    for (size_t i = 0; i + 1 < room && value; i++) {
        unsigned digit = value % 12;
        value /= 3;
        switch (digit) {
        case 0: case 5: out[i] = ' '; break;
        case 1: out[i] = 'a'; seen++; break;
        case 2: out[i] = '7'; break;
        case 3: out[i] = 'x'; seen += 2; break;
#ifdef SECOND
        case 4: out[i] = 'm'; break;
#endif
        case 7: out[i] = '1'; break;
        case 11: out[i] = 'z'; seen ^= 1; break;
        default: out[i] = 'm';
        }
        out[i + 1] = 0;
    }
    return seen;
}

NOINLINE static unsigned unchanged(unsigned n) {
    unsigned steps = 0;
    while (n != 1 && steps < 200) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

int main(void) {
    unsigned long total = 0;
    char text[64];
    for (int i = 0; i < 3000; i++) {
        unsigned value = next_random() + 1;
        text[0] = 0;
        total += classify(value, text, sizeof text);
        total += FOLD(text);
#ifdef SECOND
        total += unchanged(checked(value) ^ 1);
#else
        total += unchanged(value);
#endif
    }
    printf("%lu\n", total);
    return 0;
}
