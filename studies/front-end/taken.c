/* A plugin for qemu-user: how many branches of each kind a run takes.
 *
 *   qemu-x86_64 -plugin ./taken.so,out=PREFIX PROGRAM …
 *
 * Writes PREFIX.PID when the program ends, one line a kind: KIND OWN ALL, the counts in the program's own file and in all code. A branch is
 * taken where the code that runs is not what stands behind the code that ran before: so a jump to the next instruction is none, and neither is
 * a string instruction that repeats itself. What is no branch and yet goes elsewhere (signals, system calls) is `other`, and not in the sum.
 */
#include "../qemu-plugin.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { CALL, CALL_THROUGH, RETURN, JUMP, JUMP_THROUGH, CONDITIONAL, OTHER, KINDS };
static const char *const names[KINDS] = {"call", "call-indirect", "return", "jump", "jump-indirect", "conditional", "other"};

struct block { struct span span; enum kind kind; int own; };
enum { THREADS = 256 };
static struct thread { const struct block *before; uint64_t taken[2][KINDS], instructions[2]; } threads[THREADS];
static char out[4096] = "taken";

/* What the instruction that ends a block is. */
static enum kind kind_of(const uint8_t *code, size_t size) {
    size_t at = 0;
    while (at + 1 < size && (code[at] == 0x66 || code[at] == 0x67 || code[at] == 0xf2 || code[at] == 0xf3 || code[at] == 0x2e || code[at] == 0x3e ||
                             (code[at] & 0xf0) == 0x40)) at++;
    uint8_t first = code[at], second = at + 1 < size ? code[at + 1] : 0;
    if (first == 0xe8) return CALL;
    if (first == 0xe9 || first == 0xeb) return JUMP;
    if (first == 0xc3 || first == 0xc2) return RETURN;
    if ((first & 0xf0) == 0x70 || (first >= 0xe0 && first <= 0xe3) || (first == 0x0f && (second & 0xf0) == 0x80)) return CONDITIONAL;
    if (first == 0xff && (second >> 3 & 7) == 2) return CALL_THROUGH;
    if (first == 0xff && (second >> 3 & 7) == 4) return JUMP_THROUGH;
    return OTHER;
}

static void run(unsigned number, void *data) {
    if (number >= THREADS) return;
    struct thread *thread = &threads[number];
    const struct block *block = data, *before = thread->before;
    if (before && block->span.start != before->span.end && block->span.start != before->span.last) thread->taken[before->own][before->kind]++;
    thread->instructions[block->own] += block->span.instructions;
    thread->before = block;
}

/* Blocks are never freed: those that qemu forgets may be the last that ran. */
static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *translated) {
    (void)id;
    struct block *block = malloc(sizeof *block);
    if (!block) abort();
    struct qemu_plugin_insn *last = read_span(translated, &block->span);
    block->kind = kind_of(qemu_plugin_insn_data(last), qemu_plugin_insn_size(last));
    block->own = block->span.start >= qemu_plugin_start_code() && block->span.start < qemu_plugin_end_code();
    qemu_plugin_register_vcpu_tb_exec_cb(translated, run, 0, block);
}

static void ended(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    char name[4128];
    snprintf(name, sizeof name, "%s.%d", out, (int)getpid());
    FILE *to = fopen(name, "w");
    if (!to) { perror(name); return; }
    uint64_t sum[2] = {0}, instructions[2] = {0};
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t taken[2] = {0};
        for (int i = 0; i < THREADS; i++) for (int own = 0; own < 2; own++) taken[own] += threads[i].taken[own][kind];
        for (int own = 0; own < 2 && kind != OTHER; own++) sum[own] += taken[own];
        fprintf(to, "%s %lu %lu\n", names[kind], taken[1], taken[0] + taken[1]);
    }
    for (int i = 0; i < THREADS; i++) for (int own = 0; own < 2; own++) instructions[own] += threads[i].instructions[own];
    fprintf(to, "taken %lu %lu\n", sum[1], sum[0] + sum[1]);
    fprintf(to, "instructions %lu %lu\n", instructions[1], instructions[0] + instructions[1]);
    fclose(to);
}

/* A child process begins to count anew. */
static void forked(void) { memset(threads, 0, sizeof threads); }

PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4)) snprintf(out, sizeof out, "%s", argv[i] + 4);
    pthread_atfork(NULL, NULL, forked);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
