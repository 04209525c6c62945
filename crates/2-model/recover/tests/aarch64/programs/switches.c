// Switches whose cases are small and larger, so that their tables have entries of one and two bytes.
#include <stdio.h>

int sink[16];
extern int work(int);

#define SMALL(n, op) case n: sink[n & 15] op x; break;
__attribute__((noinline)) int small(int x) {
    switch (x) {
        SMALL(0, +=) SMALL(1, -=) SMALL(2, ^=) SMALL(3, |=) SMALL(4, &=) SMALL(5, *=) SMALL(6, +=) SMALL(7, -=)
        SMALL(8, ^=) SMALL(9, |=) SMALL(10, &=) SMALL(11, *=) SMALL(12, +=) SMALL(13, -=) SMALL(14, ^=)
    case 15: return 2;
    case 16: return work(1) + 1;
    case 17: return x * sink[3];
    case 18: return work(9);
    }
    return -1;
}

#define LINE(n) sink[(n) & 15] += x * (n) + work(n);
#define LINES LINE(1) LINE(2) LINE(3) LINE(4) LINE(5) LINE(6) LINE(7) LINE(8) LINE(9) LINE(10)
#define MEDIUM(n) case n: LINE(n) LINES LINE(n + 1) break;
__attribute__((noinline)) int medium(int x, int y) {
    switch (y - 10) {
        MEDIUM(0) MEDIUM(1) MEDIUM(2) MEDIUM(3) MEDIUM(4) MEDIUM(5) MEDIUM(6) MEDIUM(7) MEDIUM(8) MEDIUM(9)
        MEDIUM(10) MEDIUM(11) MEDIUM(12) MEDIUM(13) MEDIUM(14) MEDIUM(15) MEDIUM(16) MEDIUM(17) MEDIUM(18)
    default: return 3;
    }
    return sink[3] + y;
}

// In a loop, with the table's address outside; nested.
__attribute__((noinline)) int machine(const unsigned char *code) {
    int value = 0;
    for (;; code++) {
        switch (*code) {
        case 'a': value += work(value); break;
        case 'b': value *= 3; break;
        case 'c': value ^= sink[2]; break;
        case 'd': sink[3] = value; break;
        case 'e': value -= 7; break;
        case 'f': value = work(sink[1]); break;
        case 'g':
            switch (value & 7) {
            case 0: sink[4]++; break;
            case 1: value = work(3); break;
            case 2: sink[6] = 5; break;
            case 3: value -= sink[7]; break;
            case 4: return 8;
            case 5: value = work(9) * 2; break;
            default: sink[9] = work(10);
            }
            break;
        case 'h': value = work(1) - work(2); break;
        case 'i': sink[10] *= value; break;
        case 'j': value |= 5; break;
        case 'k': value = sink[value & 15]; break;
        case 'l': sink[8]--; break;
        case 'm': value = work(sink[12]); break;
        case 'n': sink[1] ^= sink[2]; break;
        case 'o': value /= 3; break;
        case 'p': value = -value; break;
        case 'q': value %= 10; break;
        case 'r': sink[11] = work(value) + work(5); break;
        case 0: return value;
        }
    }
}
