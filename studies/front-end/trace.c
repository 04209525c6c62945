/* A plugin for qemu-user: which blocks of code were executed, in turn, to be replayed in other layouts.
 *
 *   qemu-x86_64 -plugin ./trace.so,out=PREFIX PROGRAM …
 *
 * Writes PREFIX.blocks, one line a translated block: PATH OFFSET BYTES, in hexadecimal, the offset in the file (an address and the path - where there is
 * none), and PREFIX.trace, the numbers of the blocks that ran as 32-bit words of the machine's. For programs of one thread that start no other.
 */
#include "../qemu-plugin.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 1 << 22, GATHERED = 1 << 20, MOST_MAPPINGS = 65536 };
struct block { uint64_t start, bytes; };
struct mapping { uint64_t start, end, offset; char *path; };

static struct block *blocks;
static uint64_t known;
static uint32_t gathered[GATHERED];
static size_t filled;
static FILE *trace;
static char out[4096] = "run";

static FILE *opened(const char *suffix) {
    char name[4128];
    snprintf(name, sizeof name, "%s.%s", out, suffix);
    FILE *file = fopen(name, "w");
    if (!file) { perror(name); abort(); }
    return file;
}

static void flush(void) {
    if (fwrite(gathered, sizeof *gathered, filled, trace) != filled) { perror("trace"); abort(); }
    filled = 0;
}

static void executed(unsigned vcpu, void *number) {
    (void)vcpu;
    gathered[filled++] = (uint32_t)(uintptr_t)number;
    if (filled == GATHERED) flush();
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    if (known == MOST_BLOCKS) { fputs("trace: too many blocks\n", stderr); abort(); }
    struct block *block = &blocks[known];
    block->start = (uint64_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
    for (size_t i = 0; i < count; i++) block->bytes += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, i));
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, 0, (void *)(uintptr_t)known++);
}

static void ended(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    static struct mapping map[MOST_MAPPINGS];
    size_t mapped = 0;
    char line[8192], path[4096];
    flush();
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps) && mapped < MOST_MAPPINGS) {
        unsigned long start, end, offset;
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &start, &end, &offset, path) == 4 && path[0] == '/')
            map[mapped++] = (struct mapping){start, end, offset, strdup(path)};
    }
    FILE *list = opened("blocks");
    for (uint64_t i = 0; i < known; i++) {
        const struct mapping *in = NULL;
        for (size_t m = 0; m < mapped && !in; m++)
            if (blocks[i].start >= map[m].start && blocks[i].start < map[m].end) in = &map[m];
        uint64_t offset = in ? blocks[i].start - in->start + in->offset : blocks[i].start;
        fprintf(list, "%s %lx %lx\n", in ? in->path : "-", (unsigned long)offset, (unsigned long)blocks[i].bytes);
    }
    if (fclose(list) || fclose(trace)) { perror("trace"); abort(); }
}

PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4)) snprintf(out, sizeof out, "%s", argv[i] + 4);
    blocks = calloc(MOST_BLOCKS, sizeof *blocks);
    if (!blocks) return 1;
    trace = opened("trace");
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
