/* A plugin of qemu-user that counts what a layout costs: misses of an instruction cache of 32 KiB (lines of 64 bytes, eight ways, the least recently used goes), jumps
 * that were taken, without calls and returns, and instructions. At the end one line on the standard error: MISSES JUMPS INSTRUCTIONS.
 *
 *   gcc -O2 -shared -fPIC cache.c -o cache.so
 *   qemu-x86_64 -plugin ./cache.so PROGRAM ...
 *   qemu-x86_64 -plugin ./cache.so,places=24 PROGRAM ...
 *
 * Which lines share a set is an accident of a layout. With places, a fourth figure is the mean of the misses of so many caches of the same size in each of which
 * others share one (the number of a line times an odd one, its uppermost bits), and a fifth all jumps, calls and returns that were taken.
 *
 * For programs of one thread. Unlike callgrind, which takes several times as long, it counts jumps between fragments of a function, too. What its figures and those of
 * valgrind differ by stands in README.md. */
#include "../qemu-plugin.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 64, WAYS = 8, LINE = 64, PLACES = 64 };

struct block {
    struct span span;
    int calls;
};

static const struct block *before;
static uint64_t lines[1 + PLACES][SETS][WAYS], misses[1 + PLACES], jumps, executed;
static uint64_t taken, places, factors[1 + PLACES];

/* The ways of a set stand in the order of their last use. */
static void touch_in(unsigned cache, uint64_t line) {
    uint64_t *ways = lines[cache][cache ? line * factors[cache] >> 58 : line % SETS];
    unsigned at = 0;
    while (at < WAYS && ways[at] != line) at++;
    if (at == WAYS) {
        misses[cache]++;
        at--;
    }
    for (; at > 0; at--) ways[at] = ways[at - 1];
    ways[0] = line;
}

static void touch(uint64_t line) {
    for (unsigned cache = 0; cache <= places; cache++) touch_in(cache, line);
}

static void run(unsigned thread, void *data) {
    (void)thread;
    const struct block *block = data;
    executed += block->span.instructions;
    /* A repeated instruction is no jump. */
    if (before && block->span.start != before->span.end && block->span.start != before->span.last) {
        taken++;
        if (!before->calls) jumps++;
    }
    before = block;
    for (uint64_t line = block->span.start / LINE; line <= (block->span.end - 1) / LINE; line++) touch(line);
}

/* Whether an instruction is a call of a function or of the system, or a return. */
static int calls(struct qemu_plugin_insn *instruction) {
    const unsigned char *byte = qemu_plugin_insn_data(instruction);
    const unsigned char *end = byte + qemu_plugin_insn_size(instruction);
    /* notrack, bnd, rep, a width, an extension of registers */
    while (byte < end && (*byte == 0x3e || *byte == 0xf2 || *byte == 0xf3 || *byte == 0x66 || (*byte & 0xf0) == 0x40)) byte++;
    if (byte == end) return 0;
    if (*byte == 0x0f) return byte + 1 < end && byte[1] == 0x05;
    if (*byte == 0xff) return byte + 1 < end && ((byte[1] >> 3 & 7) == 2 || (byte[1] >> 3 & 7) == 3);
    return *byte == 0xe8 || *byte == 0xc2 || *byte == 0xc3;
}

/* Blocks are never freed: those that qemu forgets may be the last that ran. */
static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *translated) {
    (void)id;
    struct block *block = malloc(sizeof *block);
    if (!block) abort();
    struct qemu_plugin_insn *last = read_span(translated, &block->span);
    block->calls = calls(last);
    qemu_plugin_register_vcpu_tb_exec_cb(translated, run, 0, block);
}

static void end(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    uint64_t sum = 0;
    for (unsigned cache = 1; cache <= places; cache++) sum += misses[cache];
    fprintf(stderr, "%" PRIu64 " %" PRIu64 " %" PRIu64, misses[0], jumps, executed);
    if (places) fprintf(stderr, " %" PRIu64 " %" PRIu64, sum / places, taken);
    fputc('\n', stderr);
}

PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments) {
    if (info->version.min > 1 || info->version.cur < 1) {
        fputs("cache: this qemu speaks another version of the plugins' interface\n", stderr);
        return 1;
    }
    for (int i = 0; i < count; i++)
        if (!strncmp(arguments[i], "places=", 7)) places = strtoull(arguments[i] + 7, NULL, 0);
    if (places > PLACES) {
        fputs("cache: places are 64 at most\n", stderr);
        return 1;
    }
    uint64_t random = 0x9e3779b97f4a7c15u;
    for (unsigned cache = 1; cache <= places; cache++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        factors[cache] = random | 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
