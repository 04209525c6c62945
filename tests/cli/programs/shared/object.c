// A shared object with what only such have: functions that others may put theirs in place of, resolvers, constructors, storage of each thread.
#include <stdio.h>
#include <string.h>

__thread int counter = 3;
static __thread long own_counter;
int exported_data = 7;

static int helper(int x) { return x * 3 + exported_data; }
__attribute__((noinline)) int preempted(int x) { return x + 1; }
int (*table[])(int) = {helper, preempted};

static int slow(int x) { return x + 100; }
static int fast(int x) { return x + 200; }
static int (*resolve(void))(int) { return exported_data == 7 ? fast : slow; }
int picked(int x) __attribute__((ifunc("resolve")));

static int constructed;
__attribute__((constructor)) static void begin(void) { constructed = picked(1); }
__attribute__((destructor)) static void end(void) { printf("constructed with %d\n", constructed); }

int work(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        switch (i % 7) {
        case 0: sum += helper(i); break;
        case 1: sum -= preempted(i); break;
        case 2: sum ^= table[i & 1](i); break;
        case 3: sum += (int)strlen("abc") * i; break;
        case 4: sum += counter++; break;
        case 5: own_counter += i; sum += (int)own_counter; break;
        default: sum += picked(i);
        }
    }
    return sum;
}
