/* Measures each instruction of the list; see effects.rs. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { REGISTERS = 16, FLAGS = 5, PLACES = REGISTERS + FLAGS, ROUNDS = 400, STACK = 4, RCX = 1 };

struct state {
    unsigned long registers[REGISTERS], flags;
};
struct entry {
    unsigned char *code, *end;
    unsigned addresses, repeats;
};
extern struct state in, out;
extern struct entry list[];
void run(void *code);

static const unsigned long flag_bits[FLAGS] = {0x800, 0x80, 0x40, 0x10, 0x4};
static unsigned char memory[512], before[512], after[512];
static sigjmp_buf refused;
static void on_signal(int signal) { siglongjmp(refused, signal); }

static unsigned long number = 88172645463325252ul;
static unsigned long random_number(void) {
    number ^= number << 13;
    number ^= number >> 7;
    return number ^= number << 17;
}
/* Mostly numbers at which instructions do something special. */
static unsigned long value(void) {
    static const unsigned long special[] = {0, 0, 0, 1, 2, 3, 8, 0x1f, 0x20, 0x3f, 0x40, 0x80, 0xff, 0x100, 0x8000, 0xffff,
        0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 1ul << 63, -1ul};
    unsigned long i = random_number() % 32;
    return i < sizeof special / sizeof *special ? special[i] : random_number();
}

static void set(struct state *state, const struct entry *entry, int place) {
    if (place >= REGISTERS) {
        state->flags ^= flag_bits[place - REGISTERS];
    } else if (entry->addresses >> place & 1) {
        state->registers[place] = (unsigned long)(memory + 256);
    } else {
        state->registers[place] = entry->repeats && place == RCX ? random_number() % 3 : value();
    }
}

/* What comes out of a state. */
static struct state result(const struct entry *entry, const struct state *state, unsigned char *left) {
    memcpy(memory, before, sizeof memory);
    in = *state;
    run(entry->code);
    memcpy(left, memory, sizeof memory);
    out.registers[STACK] = 0;
    return out;
}

static int differ(const struct state *a, const struct state *b, int place) {
    if (place < REGISTERS)
        return a->registers[place] != b->registers[place];
    return ((a->flags ^ b->flags) & flag_bits[place - REGISTERS]) != 0;
}

static void measure(const struct entry *entry, unsigned *read, unsigned *kept) {
    static unsigned char other_after[512];
    for (int round = 0; round < ROUNDS; round++) {
        struct state state = {.flags = 0x202 | (random_number() & 0x8d5)};
        for (int place = 0; place < REGISTERS; place++)
            set(&state, entry, place);
        for (unsigned i = 0; i < sizeof before; i++)
            before[i] = random_number() % 3 ? 0 : (unsigned char)random_number();
        struct state first = result(entry, &state, after);
        for (int place = 0; place < PLACES; place++) {
            struct state changed = state;
            if (place == STACK || (place < REGISTERS && entry->addresses >> place & 1))
                continue;
            set(&changed, entry, place);
            if (!differ(&changed, &state, place))
                continue;
            struct state second = result(entry, &changed, other_after);
            int influences = memcmp(after, other_after, sizeof after) != 0 || ((first.flags ^ second.flags) & 1);
            for (int i = 0; i < PLACES; i++)
                influences |= i != place && differ(&first, &second, i);
            *read |= (unsigned)influences << place;
            *kept |= (unsigned)differ(&first, &second, place) << place;
        }
    }
}

int main(void) {
    static const int signals[] = {SIGILL, SIGFPE, SIGSEGV, SIGBUS};
    for (unsigned i = 0; i < 4; i++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
        sigaction(signals[i], &action, NULL);
    }
    for (const struct entry *entry = list; entry->code; entry++) {
        unsigned read = 0, kept = 0;
        int signal = sigsetjmp(refused, 1);
        if (signal) {
            printf("signal%d\n", signal);
            continue;
        }
        measure(entry, &read, &kept);
        for (const unsigned char *byte = entry->code; byte < entry->end; byte++)
            printf("%02x", *byte);
        printf(" %x %x\n", read, kept);
    }
    return 0;
}
