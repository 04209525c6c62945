/* A plugin of qemu-user that writes branch stacks as a processor would record them: every so many instructions, the last 32 branches
 * that were taken. One line a sample: pairs FROM/TO in hexadecimal, the oldest first, as addresses of the program's file; what is
 * outside of the program's code is X.
 *
 *   gcc -O2 -shared -fPIC stacks.c -o stacks.so
 *   qemu-x86_64 -plugin ./stacks.so,code=0xADDRESS,every=20000,seed=1,out=FILE PROGRAM ...
 *
 * code is where the program's first segment of code stands in its file (p_vaddr), by which the place that it was loaded at is known. A branch was taken where the block of code that
 * runs is not the one behind the last, or the last ends in an instruction that always jumps: layouts put what an indirect jump mostly leads to right behind
 * it. A repeated instruction is no branch, and neither is a conditional one to the next.
 * The distance between samples varies by up to half of it at random, and the first is random, too, so that every instruction is equally probable; the same seed
 * gives the same moments. Where several threads run, each has its stack and its own distances. */
#include "../qemu-plugin.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 32, THREADS = 256 };

struct block {
    struct span span;
    int jumps;
};

struct thread {
    const struct block *before;
    uint64_t from[DEPTH], to[DEPTH], branches;
    int64_t left;
    uint64_t random;
};

static struct thread threads[THREADS];
static uint64_t code = UINT64_MAX, every = 20000, seed = 1, load, first_code, behind_code;
static FILE *out;

static void print(uint64_t address) {
    if (address >= first_code && address < behind_code)
        fprintf(out, "%" PRIx64, address - load);
    else
        fputc('X', out);
}

static void sample(const struct thread *thread) {
    if (thread->branches < DEPTH) return;
    flockfile(out);
    for (uint64_t i = thread->branches; i < thread->branches + DEPTH; i++) {
        print(thread->from[i % DEPTH]);
        fputc('/', out);
        print(thread->to[i % DEPTH]);
        fputc(i + 1 < thread->branches + DEPTH ? ' ' : '\n', out);
    }
    funlockfile(out);
}

/* Neighbouring numbers, far apart. */
static uint64_t mixed(uint64_t number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

static uint64_t next(struct thread *thread) {
    thread->random ^= thread->random << 13;
    thread->random ^= thread->random >> 7;
    thread->random ^= thread->random << 17;
    return mixed(thread->random);
}

static void run(unsigned number, void *data) {
    if (number >= THREADS) return;
    struct thread *thread = &threads[number];
    const struct block *block = data, *before = thread->before;
    if (before && (block->span.start != before->span.end || before->jumps) && block->span.start != before->span.last) {
        unsigned at = thread->branches++ % DEPTH;
        thread->from[at] = before->span.last;
        thread->to[at] = block->span.start;
    }
    thread->before = block;
    if (!thread->random) {
        thread->random = mixed(seed * THREADS + number) | 1;
        thread->left = (int64_t)(next(thread) % every);
    }
    thread->left -= (int64_t)block->span.instructions;
    if (thread->left > 0) return;
    sample(thread);
    thread->left += (int64_t)(every / 2 + next(thread) % every);
}

/* Whether an instruction is a call, a return, or a jump without a condition. */
static int always_jumps(struct qemu_plugin_insn *instruction) {
    const unsigned char *byte = qemu_plugin_insn_data(instruction);
    const unsigned char *end = byte + qemu_plugin_insn_size(instruction);
    /* notrack, bnd, a width, an extension of registers */
    while (byte < end && (*byte == 0x3e || *byte == 0xf2 || *byte == 0x66 || (*byte & 0xf0) == 0x40)) byte++;
    if (byte == end) return 0;
    if (*byte == 0xff) return byte + 1 < end && (byte[1] >> 3 & 7) >= 2 && (byte[1] >> 3 & 7) <= 5;
    return (*byte >= 0xe8 && *byte <= 0xeb) || *byte == 0xc2 || *byte == 0xc3;
}

/* Blocks are never freed: those that qemu forgets may be the last that ran. */
static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *translated) {
    (void)id;
    if (!first_code) {
        first_code = qemu_plugin_start_code();
        load = first_code - code;
        behind_code = qemu_plugin_end_code();
    }
    struct block *block = malloc(sizeof *block);
    if (!block) abort();
    struct qemu_plugin_insn *last = read_span(translated, &block->span);
    block->jumps = always_jumps(last);
    qemu_plugin_register_vcpu_tb_exec_cb(translated, run, 0, block);
}

static void end(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    fclose(out);
}

PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments) {
    if (info->version.min > 1 || info->version.cur < 1) {
        fputs("stacks: this qemu speaks another version of the plugins' interface\n", stderr);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        if (!strncmp(arguments[i], "code=", 5)) code = strtoull(arguments[i] + 5, NULL, 0);
        else if (!strncmp(arguments[i], "every=", 6)) every = strtoull(arguments[i] + 6, NULL, 0);
        else if (!strncmp(arguments[i], "seed=", 5)) seed = strtoull(arguments[i] + 5, NULL, 0);
        else if (!strncmp(arguments[i], "out=", 4)) out = fopen(arguments[i] + 4, "w");
    }
    if (code == UINT64_MAX || every < 2 || !out) {
        fputs("stacks: wants code=ADDRESS,every=INSTRUCTIONS,out=FILE\n", stderr);
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
