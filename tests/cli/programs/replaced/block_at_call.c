// A block of several parts that begins with a call of a function without a frame, so that nothing leads into the code in place of that.
#include <stdio.h>
#include <stdlib.h>

struct state {
    struct part *part;
};

struct part {
    int count;
};

__attribute__((noinline)) struct part *part_of(struct state *state) {
    return state->part;
}

__attribute__((noinline)) int work(struct state *state, int n) {
    int sum = n;
    for (int i = 0; i < 2; i++) {
        struct part *part = part_of(state);
        if (__builtin_expect(!part, 0)) {
            puts("none");
            abort();
        }
        sum += part->count;
    }
    return sum;
}

int main(int count, char **words) {
    (void)words;
    struct part part = {count};
    struct state state = {&part};
    printf("%d\n", work(&state, 3));
    return 0;
}
