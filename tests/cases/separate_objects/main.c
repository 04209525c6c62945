/* Pointers to functions that seem to make a table in order, which code names that asks for the order of two addresses. But they
   are members of several objects, and whoever has one of them does not get to the next. */
#include "infos.h"
#include <stdint.h>
#include <stdio.h>

struct list {
    char *start, *end, *last;
};

NOINLINE unsigned apply(const struct info *info, unsigned x) {
    return info->again(info->hash(info->equals(info->profile(x))));
}

#define FIND(n)                                                   \
    NOINLINE unsigned find##n(struct list *list, unsigned x) {    \
        if ((uintptr_t)list->end >= (uintptr_t)list->last)        \
            list->end = list->start;                              \
        list->end += 1;                                           \
        return apply(&info##n, x);                                \
    }
FIND(0)
FIND(1)
FIND(2)
FIND(3)

int main(void) {
    char room[5];
    struct list list = {room, room, room + 5};
    unsigned sum = 1;
    for (unsigned i = 0; i < 300; i++) {
        sum = find0(&list, opaque(sum));
        sum = find1(&list, sum);
        sum = find2(&list, sum);
        sum = find3(&list, sum);
    }
    printf("%08x %d\n", sum, (int)(list.end - list.start));
    return 0;
}
