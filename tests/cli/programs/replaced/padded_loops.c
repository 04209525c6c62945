// A callee with padding in front of its loops, some of which is all of a block, and a caller.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    int value;
};

struct map {
    struct entry **table;
    unsigned size, count;
};

struct place {
    struct map *map;
    struct entry *next;
    unsigned row;
};

static struct entry *following(struct place *place) {
    struct entry *entry = place->next;
    for (;;) {
        if (entry) {
            place->next = entry->next;
            return entry;
        }
        if (place->row >= place->map->size)
            return NULL;
        entry = place->map->table[place->row++];
    }
}

static __attribute__((noinline)) void free_each(struct map *map, long offset) {
    struct place place = {map, NULL, 0};
    struct entry *entry;
    while ((entry = following(&place)))
        free((char *)entry - offset);
}

__attribute__((noinline)) void clear(struct map *map, long offset) {
    if (!map || !map->table)
        return;
    if (offset >= 0)
        free_each(map, offset);
    free(map->table);
    memset(map, 0, sizeof *map);
}

int main(void) {
    for (int n = 0; n < 50; n++) {
        struct map map = {calloc(8, sizeof(struct entry *)), 8, 0};
        for (int i = 0; i < 20; i++) {
            struct entry *entry = malloc(sizeof *entry);
            *entry = (struct entry){map.table[i & 7], i};
            map.table[i & 7] = entry;
        }
        clear(&map, 0);
    }
    puts("cleared");
    return 0;
}
