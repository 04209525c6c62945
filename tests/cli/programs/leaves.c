/* A call that comes back nowhere stands in the middle of a function, with padding behind it (gcc 12 -O2); it is
   a call through the PLT, in whose place afterlink writes a longer one. */
#include <stdio.h>
#include <stdlib.h>

static volatile int asked, states[16];

__attribute__((noinline)) static int is_alive(int which) { return states[which & 15]; }
__attribute__((noinline)) static char *copy(const char *text) { return text ? (char *)text + 1 : NULL; }

__attribute__((noinline)) static int handle(int which, const char *text) {
    int found = which * 3;
    if (asked) {
        asked = 0;
        char *own = copy(text);
        found += own ? own[0] : 0;
        states[3] = found;
    }
    if (states[2]) exit(found);
    if (states[1] && !is_alive(which)) exit(1);
    if (which > 3) {
        while (is_alive(found)) found += copy(text)[0];
        states[4] = found;
        exit(states[5]);
    }
    return found;
}

int main(int count, char **words) {
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        asked = 1;
        sum += handle(i + count - 1, words[0]);
    }
    printf("%d\n", sum);
    return 0;
}
