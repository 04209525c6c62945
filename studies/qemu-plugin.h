/* What plugins of qemu-user need of its interface, version 1: the declarations are few, and not every system's qemu-user brings its header. */
#ifndef AFTERLINK_QEMU_PLUGIN_H
#define AFTERLINK_QEMU_PLUGIN_H
#include <stddef.h>
#include <stdint.h>

/* Of what the plugin defines, for those that are compiled with all else hidden. */
#define PLUGIN __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef struct {
    const char *target_name;
    struct { int min, cur; } version;
} qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };
typedef void (*on_block)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*on_run)(unsigned thread, void *data);
typedef void (*on_end)(qemu_plugin_id_t, void *data);
typedef void (*on_syscall)(qemu_plugin_id_t, unsigned thread, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
    uint64_t);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, on_block);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, on_run, int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation, void *, uint64_t);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, on_syscall);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, on_end, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_start_code(void);
uint64_t qemu_plugin_end_code(void);

PLUGIN int qemu_plugin_version = 1;

/* Where a block of code starts, its last instruction does, and what is behind it starts; and how many instructions it has. */
struct span { uint64_t start, last, end, instructions; };

/* The span of a block, and its last instruction. */
static inline struct qemu_plugin_insn *read_span(const struct qemu_plugin_tb *block, struct span *span) {
    size_t count = qemu_plugin_tb_n_insns(block);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(block, count - 1);
    span->start = qemu_plugin_tb_vaddr(block);
    span->last = qemu_plugin_insn_vaddr(last);
    span->end = span->last + qemu_plugin_insn_size(last);
    span->instructions = count;
    return last;
}
#endif
