/* A direct-threaded interpreter in the shape of PostgreSQL's ExecInterpExpr: called without a program it hands out its
   label table; programs are prepared by storing label addresses into their steps; a reverse table, sorted by address,
   leads from a label back to its opcode. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>

enum op { PUSH, ADD, MUL, XOR, DUP, DROP, JUMP_NONZERO, DECREMENT, DONE, OPS };

struct step {
    const void *opcode;
    unsigned operand;
};

struct reverse {
    const void *opcode;
    enum op op;
};

static const void **dispatch_table;
static struct reverse reverse_table[OPS];

NOINLINE unsigned interpret(struct step *program) {
    static const void *const table[] = {
        &&do_push, &&do_add, &&do_mul, &&do_xor, &&do_dup, &&do_drop, &&do_jump_nonzero, &&do_decrement, &&do_done,
    };
    unsigned stack[16], *top = stack;
    struct step *at = program;

    if (program == NULL) {
        dispatch_table = (const void **)table;
        return 0;
    }
#define DISPATCH goto *at->opcode
    DISPATCH;
do_push:
    *top++ = at->operand;
    at++;
    DISPATCH;
do_add:
    top--;
    top[-1] += top[0];
    at++;
    DISPATCH;
do_mul:
    top--;
    top[-1] *= top[0];
    at++;
    DISPATCH;
do_xor:
    top--;
    top[-1] ^= top[0] + at->operand;
    at++;
    DISPATCH;
do_dup:
    top[0] = top[-1];
    top++;
    at++;
    DISPATCH;
do_drop:
    top--;
    at++;
    DISPATCH;
do_jump_nonzero:
    if (stack[0] != 0)
        at = program + at->operand;
    else
        at++;
    DISPATCH;
do_decrement:
    stack[0]--;
    at++;
    DISPATCH;
do_done:
    return top[-1];
}

static int by_address(const void *a, const void *b) {
    const struct reverse *x = a, *y = b;
    return (x->opcode > y->opcode) - (x->opcode < y->opcode);
}

NOINLINE enum op op_of(const void *opcode) {
    struct reverse key = {opcode, OPS}, *found;
    found = bsearch(&key, reverse_table, OPS, sizeof key, by_address);
    return found ? found->op : OPS;
}

int main(void) {
    static const struct { enum op op; unsigned operand; } source[] = {
        {PUSH, 400}, {PUSH, 1},  {DUP, 0}, {PUSH, 7},         {MUL, 0},  {ADD, 0}, {PUSH, 91},
        {XOR, 5},    {DUP, 0},   {DROP, 0}, {DECREMENT, 0}, {JUMP_NONZERO, 2}, {DONE, 0},
    };
    enum { STEPS = sizeof source / sizeof source[0] };
    struct step program[STEPS];

    interpret(NULL);
    for (int i = 0; i < OPS; i++)
        reverse_table[i] = (struct reverse){dispatch_table[i], (enum op)i};
    qsort(reverse_table, OPS, sizeof reverse_table[0], by_address);
    for (int i = 0; i < STEPS; i++)
        program[i] = (struct step){dispatch_table[source[i].op], source[i].operand};
    for (int i = 0; i < STEPS; i++)
        if (op_of(program[i].opcode) != source[i].op)
            printf("step %d is not what it was\n", i);
    printf("%08x\n", interpret(program));
    return 0;
}
