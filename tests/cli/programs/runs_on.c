/* Functions that end by a jump to another: one that is nothing else, several to the same one, one by a branch, one in whose middle it stands. */
#define APART __attribute__((noipa))

static volatile unsigned failures;

APART unsigned last(unsigned x) { return x * 17 + failures; }
APART unsigned only_jumps(unsigned x) { return last(x); }
APART unsigned other_way(unsigned x) { return last(x ^ 0x55); }
APART unsigned next_one(unsigned x) { return only_jumps(x + 3); }
APART unsigned by_branch(unsigned x) { return x % 16 ? next_one(x) : 1; }

APART unsigned in_the_middle(unsigned x) {
    if (x % 8)
        return other_way(x / 3);
    unsigned sum = 0;
    for (unsigned i = 0; i < x % 5; i++)
        sum += i ^ x;
    return sum;
}

APART unsigned alone(unsigned x) { return x - failures; }

int main(void) {
    unsigned sum = 1;
    for (unsigned i = 1; i < 60; i++) {
        sum += by_branch(i);
        sum ^= in_the_middle(sum);
        sum += alone(i);
    }
    return sum & 0x7f;
}

__attribute__((naked)) void _start(void) {
    __asm__("and $-16, %rsp\n call main\n mov %eax, %edi\n mov $60, %eax\n syscall");
}
