/* A plugin for qemu-user: what the front end of a processor does with the instructions of a run, by a model of it.
 *
 *   qemu-x86_64 -plugin ./model.so,processor=zen4.processor,out=PREFIX PROGRAM …
 *
 * The model runs beside the program, so no trace is stored. Each process writes PREFIX.PID when it ends: a line an event, and `cycles`, their
 * sum by the processor's weights. The processor is a file: sizes of its structures and weights (zen4.processor says what each is).
 *
 * What is modelled: op cache, decoding in windows, instruction cache with its second level and the next line's prefetch, both levels of the
 * branch target buffer and of the instruction TLB, huge pages where the program asks the kernel for them (madvise), and code that the program
 * itself asks for ahead (prefetchit0), at once. What is not: whether
 * branches are predicted right, which hardly depends on where code stands, data, speculation on wrong paths, and the kernel's code.
 */
#include "../qemu-plugin.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The processor. Sizes come first, then weights, all by name. */
#define SIZES(X) \
    X(opcache_sets) X(opcache_ways) X(opcache_ops) X(opcache_branches) X(dispatch) X(decode) X(window) \
    X(line) X(icache_sets) X(icache_ways) X(prefetch) X(l2_sets) X(l2_ways) \
    X(btb1_sets) X(btb1_ways) X(btb2_sets) X(btb2_ways) X(itlb1_sets) X(itlb1_ways) X(itlb2_sets) X(itlb2_ways)
#define EVENTS(X) \
    X(instructions) X(taken) X(called) X(returned) X(through) X(supply) X(opcache_hit) X(opcache_miss) X(decode_cycle) X(icache_access) X(icache_miss) X(l2_miss) \
    X(btb1_miss) X(btb2_miss) X(itlb1_miss) X(itlb2_miss) X(line_touched) X(line_miss) \
    X(prefetched) X(prefetched_missing)
enum size_name {
#define X(name) S_##name,
    SIZES(X)
#undef X
    SIZE_COUNT
};
enum event_name {
#define X(name) E_##name,
    EVENTS(X)
#undef X
    EVENT_COUNT
};
#define X(name) #name,
static const char *size_names[] = {SIZES(X)}, *event_names[] = {EVENTS(X)};
#undef X
static uint64_t size[SIZE_COUNT];
/* Of lines, of decoding's windows and of sets there are powers of two: nothing is divided for each instruction. */
static unsigned line_bits, window_bits;
static uint64_t line_of(uint64_t address) { return address >> line_bits; }
static double weight[EVENT_COUNT];

/* Sets of ways, the least recently used one goes. A key is never 0; each way holds one more word. */
struct way { uint64_t key, value, extra; };
struct sets { struct way *ways; uint64_t count, each; };

static struct sets sets_of(uint64_t count, uint64_t each) {
    struct sets sets = {calloc(count * each + 1, sizeof(struct way)), count, each};
    if (!sets.ways) abort();
    return sets;
}

/* The way that holds `key`, now the most recent; or the set's oldest, emptied, as its most recent. */
static struct way *use(struct sets *sets, uint64_t index, uint64_t key, int *hit) {
    struct way *set = sets->ways + (index & (sets->count - 1)) * sets->each;
    uint64_t at = 0;
    while (at + 1 < sets->each && set[at].key != key) at++;
    *hit = set[at].key == key;
    struct way found = *hit ? set[at] : (struct way){key, 0, 0};
    memmove(set + 1, set, at * sizeof *set);
    set[0] = found;
    return set;
}

enum kind { PLAIN, CONDITIONAL, JUMP, JUMP_THROUGH, CALL, CALL_THROUGH, RETURN };
/* `asked`: by instruction, the address whose line it prefetches, or 0; NULL if none does. */
struct block { uint64_t start, end, last, *asked; uint32_t count; uint8_t kind; uint8_t sizes[]; };

struct core {
    uint64_t events[EVENT_COUNT];
    struct sets opcache, icache, lines, l2, btb1, btb2, itlb1, itlb2;
    const struct block *before;
    /* The op cache's entry that instructions come from. */
    uint64_t entry, known_end, ops, branches, windows, last_window, reach;
    int open, hit;
    uint64_t page, decoded_line, run_line;
};
enum { CORES = 256, HUGE_RANGES = 64 };
static struct core *cores[CORES];
static struct { uint64_t start, end; } huge[HUGE_RANGES];
static unsigned huge_count;
static char out[4096] = "model";

static struct core *core_of(unsigned index) {
    struct core *core = cores[index % CORES];
    if (core) return core;
    core = calloc(1, sizeof *core);
    if (!core) abort();
    core->opcache = sets_of(size[S_opcache_sets], size[S_opcache_ways]);
    core->icache = sets_of(size[S_icache_sets], size[S_icache_ways]);
    core->lines = sets_of(size[S_icache_sets], size[S_icache_ways]);
    core->l2 = sets_of(size[S_l2_sets], size[S_l2_ways]);
    core->btb1 = sets_of(size[S_btb1_sets], size[S_btb1_ways]);
    core->btb2 = sets_of(size[S_btb2_sets], size[S_btb2_ways]);
    core->itlb1 = sets_of(size[S_itlb1_sets], size[S_itlb1_ways]);
    core->itlb2 = sets_of(size[S_itlb2_sets], size[S_itlb2_ways]);
    return cores[index % CORES] = core;
}

static void translate(struct core *core, uint64_t address) {
    uint64_t page = address >> 12;
    if (page == core->page) return;
    core->page = page;
    uint64_t key = page << 1 | 1, index = page;
    for (unsigned i = 0; i < huge_count; i++)
        if (address >= huge[i].start && address < huge[i].end) index = page >> 9, key = index << 1 | 1ull << 63;
    int hit;
    use(&core->itlb1, index, key, &hit);
    if (hit) return;
    use(&core->itlb2, index, key, &hit);
    core->events[hit ? E_itlb1_miss : E_itlb2_miss]++;
}

static void fetch_line(struct core *core, uint64_t line) {
    int hit;
    core->events[E_icache_access]++;
    use(&core->icache, line, line + 1, &hit);
    if (hit) return;
    core->events[E_icache_miss]++;
    use(&core->l2, line, line + 1, &hit);
    if (!hit) core->events[E_l2_miss]++;
    for (uint64_t next = 1; next <= size[S_prefetch]; next++) {
        use(&core->icache, line + next, line + next + 1, &hit);
        if (!hit) use(&core->l2, line + next, line + next + 1, &hit);
    }
}

/* `prefetchit0`: the line is there when control comes to it, if it stays that long. */
static void prefetched(struct core *core, uint64_t address) {
    int hit;
    uint64_t line = line_of(address);
    core->events[E_prefetched]++;
    use(&core->lines, line, line + 1, &hit);
    core->events[E_prefetched_missing] += !hit;
    use(&core->icache, line, line + 1, &hit);
    if (!hit) use(&core->l2, line, line + 1, &hit);
}

/* The entry is done: what it gave counts, and what was decoded is kept. */
static void close_entry(struct core *core) {
    if (!core->open) return;
    core->open = 0;
    uint64_t cycles;
    if (core->hit) {
        cycles = (core->ops + size[S_dispatch] - 1) / size[S_dispatch];
    } else {
        cycles = (core->ops + size[S_decode] - 1) / size[S_decode];
        if (cycles < core->windows) cycles = core->windows;
        core->events[E_decode_cycle] += cycles;
        int hit;
        struct way *way = use(&core->opcache, line_of(core->entry), core->entry, &hit);
        way->value = core->reach;
    }
    core->events[E_supply] += cycles;
}

static void open_entry(struct core *core, uint64_t address) {
    int hit;
    uint64_t index = line_of(address);
    struct way *way = use(&core->opcache, index, address, &hit);
    /* An entry that is being made has no end yet. */
    hit = hit && way->value;
    core->open = 1, core->hit = hit, core->entry = address, core->known_end = way->value;
    core->ops = core->branches = core->windows = 0, core->last_window = 0;
    core->events[hit ? E_opcache_hit : E_opcache_miss]++;
}

static void instruction(struct core *core, uint64_t at, unsigned bytes, int branch) {
    uint64_t line = line_of(at);
    if (core->open && (core->hit ? at >= core->known_end
                                 : line != line_of(core->entry) || core->ops >= size[S_opcache_ops] || core->branches >= size[S_opcache_branches]))
        close_entry(core);
    translate(core, at);
    if (!core->open) open_entry(core, at);
    uint64_t last = line_of(at + bytes - 1);
    for (uint64_t l = line; l <= last; l++) {
        if (l + 1 != core->run_line) {
            int hit;
            core->run_line = l + 1;
            core->events[E_line_touched]++;
            use(&core->lines, l, l + 1, &hit);
            core->events[E_line_miss] += !hit;
        }
        if (!core->hit && l + 1 != core->decoded_line) core->decoded_line = l + 1, fetch_line(core, l);
    }
    if (!core->hit) {
        uint64_t window = (at >> window_bits) + 1;
        if (window != core->last_window) core->last_window = window, core->windows++;
    }
    core->ops++, core->branches += branch, core->reach = at + bytes;
    core->events[E_instructions]++;
}

/* An entry of the branch target buffer holds two branches of one line. */
static int predicted(struct core *core, struct sets *sets, uint64_t branch) {
    uint64_t line = line_of(branch);
    struct way *set = sets->ways + (line & (sets->count - 1)) * sets->each;
    int hit = 0;
    for (uint64_t at = 0; at < sets->each && !hit; at++) {
        if (set[at].key != line + 1) continue;
        if (set[at].value != branch && set[at].extra != branch && set[at].extra) continue;
        hit = set[at].value == branch || set[at].extra == branch;
        struct way found = set[at];
        if (!hit) found.extra = branch;
        memmove(set + 1, set, at * sizeof *set);
        set[0] = found;
        return hit;
    }
    (void)core;
    memmove(set + 1, set, (sets->each - 1) * sizeof *set);
    set[0] = (struct way){line + 1, branch, 0};
    return 0;
}

static void taken(struct core *core, uint64_t branch, enum kind kind) {
    core->events[E_taken]++;
    core->events[E_called] += kind == CALL || kind == CALL_THROUGH;
    core->events[E_returned] += kind == RETURN;
    core->events[E_through] += kind == JUMP_THROUGH || kind == CALL_THROUGH;
    close_entry(core);
    core->run_line = core->decoded_line = 0;
    int first = predicted(core, &core->btb1, branch);
    int second = predicted(core, &core->btb2, branch);
    if (!first) core->events[second ? E_btb1_miss : E_btb2_miss]++;
}

static void executed(unsigned index, void *data) {
    const struct block *block = data, *before;
    struct core *core = core_of(index);
    before = core->before;
    core->before = block;
    if (before) {
        if (before->kind == PLAIN && block->start == before->last) return; /* one more round of a string instruction */
        if (block->start != before->end) taken(core, before->end - 1, before->kind);
    }
    uint64_t at = block->start;
    for (uint32_t i = 0; i < block->count; at += block->sizes[i++]) {
        instruction(core, at, block->sizes[i], i + 1 == block->count && block->kind != PLAIN);
        if (block->asked && block->asked[i]) prefetched(core, block->asked[i]);
    }
}

/* What `prefetchit0` that ends at `end` asks for; 0 for any other instruction. */
static uint64_t asked_by(const uint8_t *code, size_t bytes, uint64_t end) {
    int32_t displacement;
    if (bytes != 7 || memcmp(code, "\x0f\x18\x3d", 3)) return 0;
    memcpy(&displacement, code + 3, sizeof displacement);
    return end + displacement;
}

static enum kind kind_of(const uint8_t *code, size_t bytes) {
    while (bytes && strchr("\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67", *code) && *code) code++, bytes--;
    if (bytes && (*code & 0xf0) == 0x40) code++, bytes--;
    if (!bytes) return PLAIN;
    uint8_t second = bytes > 1 ? code[1] : 0;
    if ((*code & 0xf0) == 0x70 || (*code >= 0xe0 && *code <= 0xe3)) return CONDITIONAL;
    if (*code == 0x0f && (second & 0xf0) == 0x80) return CONDITIONAL;
    if (*code == 0xe9 || *code == 0xeb) return JUMP;
    if (*code == 0xe8) return CALL;
    if (*code == 0xc3 || *code == 0xc2) return RETURN;
    if (*code == 0xff && (second >> 3 & 7) == 2) return CALL_THROUGH;
    if (*code == 0xff && (second >> 3 & 7) == 4) return JUMP_THROUGH;
    return PLAIN;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    struct block *block = calloc(1, sizeof *block + count);
    if (!block) abort();
    block->start = block->end = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
    block->count = count;
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        block->sizes[i] = qemu_plugin_insn_size(insn);
        block->last = block->end, block->end += block->sizes[i];
        block->kind = kind_of(qemu_plugin_insn_data(insn), block->sizes[i]);
        uint64_t asked = asked_by(qemu_plugin_insn_data(insn), block->sizes[i], block->end);
        if (asked && !block->asked && !(block->asked = calloc(count, sizeof *block->asked))) abort();
        if (asked) block->asked[i] = asked;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, 0, block);
}

/* Pages are taken to be huge where the program asked for it, as by a kernel that grants it. */
static void called(qemu_plugin_id_t id, unsigned core, int64_t number, uint64_t start, uint64_t bytes, uint64_t advice, uint64_t d, uint64_t e,
                   uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)core, (void)d, (void)e, (void)f, (void)g, (void)h;
    enum { MADVISE = 28, HUGEPAGE = 14, COLLAPSE = 25 };
    const uint64_t page = 2 << 20;
    if (number != MADVISE || (advice != HUGEPAGE && advice != COLLAPSE) || huge_count == HUGE_RANGES) return;
    uint64_t from = (start + page - 1) / page * page, to = (start + bytes) / page * page;
    if (from < to) huge[huge_count].start = from, huge[huge_count++].end = to;
}

static void ended(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    char name[4128];
    snprintf(name, sizeof name, "%s.%d", out, (int)getpid());
    FILE *to = fopen(name, "w");
    if (!to) { perror(name); return; }
    double cycles = 0;
    for (int event = 0; event < EVENT_COUNT; event++) {
        uint64_t sum = 0;
        for (int core = 0; core < CORES; core++) sum += cores[core] ? cores[core]->events[event] : 0;
        fprintf(to, "%s %lu\n", event_names[event], sum);
        cycles += weight[event] * sum;
    }
    fprintf(to, "cycles %.0f\n", cycles);
    fclose(to);
}

/* Reads `name value` lines; `weight.EVENT value` is a weight. What is not named has no weight; a size must be named. */
static int read_processor(const char *path) {
    char line[512], name[128];
    double value;
    FILE *from = fopen(path, "r");
    if (!from) { perror(path); return 0; }
    while (fgets(line, sizeof line, from)) {
        if (*line == '#' || sscanf(line, "%127s %lf", name, &value) != 2) continue;
        int known = 0;
        for (int i = 0; i < SIZE_COUNT; i++)
            if (!strcmp(name, size_names[i])) size[i] = value, known = 1;
        for (int i = 0; i < EVENT_COUNT; i++)
            if (!strncmp(name, "weight.", 7) && !strcmp(name + 7, event_names[i])) weight[i] = value, known = 1;
        if (!known) { fprintf(stderr, "model: %s names %s, which is no size or weight\n", path, name); return 0; }
    }
    fclose(from);
    for (int i = 0; i < SIZE_COUNT; i++)
        if (!size[i] && i != S_prefetch) { fprintf(stderr, "model: %s lacks %s\n", path, size_names[i]); return 0; }
    const int powers[] = {S_line, S_window, S_opcache_sets, S_icache_sets, S_l2_sets, S_btb1_sets, S_btb2_sets, S_itlb1_sets, S_itlb2_sets};
    for (unsigned i = 0; i < sizeof powers / sizeof *powers; i++)
        if (size[powers[i]] & (size[powers[i]] - 1)) { fprintf(stderr, "model: %s: %s is no power of two\n", path, size_names[powers[i]]); return 0; }
    line_bits = __builtin_ctzll(size[S_line]), window_bits = __builtin_ctzll(size[S_window]);
    return 1;
}

PLUGIN int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    const char *processor = "zen4.processor";
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4)) snprintf(out, sizeof out, "%s", argv[i] + 4);
        if (!strncmp(argv[i], "processor=", 10)) processor = argv[i] + 10;
    }
    if (!read_processor(processor)) return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
