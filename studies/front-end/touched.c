/* A plugin for qemu-user: which code of which file was executed, and how often.
 *
 *   qemu-x86_64 -plugin ./touched.so,out=PREFIX PROGRAM …
 *
 * Writes one line a translated block that ran when the program ends: PATH OFFSET BYTES EXECUTIONS, the offset in the file, in hexadecimal. Code of no file
 * is left out. Each process writes PREFIX.PID.
 */
#include "../qemu-plugin.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct block { uint64_t start, bytes, executions; };
struct mapping { uint64_t start, end, offset; char *path; };

/* Blocks never move: qemu's code adds to their counts. */
enum { CHUNK = 4096, CHUNKS = 1 << 14 };
static struct block *chunks[CHUNKS];
static uint64_t blocks;
static char out[4096] = "touched";

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    uint64_t number = __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED); /* qemu translates under a lock of its own */
    if (number >= (uint64_t)CHUNK * CHUNKS) { fputs("touched: too many blocks\n", stderr); abort(); }
    if (!chunks[number / CHUNK]) chunks[number / CHUNK] = calloc(CHUNK, sizeof(struct block));
    if (!chunks[number / CHUNK]) abort();
    struct block *block = &chunks[number / CHUNK][number % CHUNK];
    block->start = (uint64_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
    for (size_t i = 0; i < count; i++) block->bytes += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, i));
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->executions, 1);
}

static void ended(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    static struct mapping map[65536];
    size_t mapped = 0;
    char line[8192], name[4128], path[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        struct mapping *m = &map[mapped];
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &m->start, &m->end, &m->offset, path) == 4 && path[0] == '/' && mapped < 65535) {
            m->path = strdup(path);
            mapped++;
        }
    }
    snprintf(name, sizeof name, "%s.%d", out, (int)getpid());
    FILE *to = fopen(name, "w");
    if (!to) { perror(name); return; }
    for (uint64_t i = 0; i < blocks; i++) {
        struct block *block = &chunks[i / CHUNK][i % CHUNK];
        for (size_t m = 0; block->executions && m < mapped; m++)
            if (block->start >= map[m].start && block->start < map[m].end)
                fprintf(to, "%s %lx %lu %lu\n", map[m].path, block->start - map[m].start + map[m].offset, block->bytes, block->executions);
    }
    fclose(to);
}

PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4)) snprintf(out, sizeof out, "%s", argv[i] + 4);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
