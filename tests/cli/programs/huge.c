/* Prints a sum, and whether the pages of its own code that run were advised to be huge. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) static int sum(int most) {
    volatile int all = 0;
    for (int i = 0; i < most; i++) all += i;
    return all;
}

__attribute__((noinline)) static int is_advised(uintptr_t code) {
    char line[1024];
    int here = 0, advised = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) here = code >= start && code < end;
        if (here && !strncmp(line, "VmFlags:", 8)) advised = strstr(line, " hg") != NULL;
    }
    if (maps) fclose(maps);
    return advised;
}

int answer(void) {
    printf("sum %d, advised %d\n", sum(100), is_advised((uintptr_t)answer));
    return 3;
}

#ifndef OBJECT
int main(void) { return answer(); }
#endif
