/* Calls answer(), which the tests lead to new code, and uses what a wrongly laid out file would break: the
   heap, zero-initialised and relocated data, unwinding, thread-local data and the dynamic linker. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

int zero[5000];
volatile int seven = 7;
_Thread_local int counted = 3;
static const char *const words[] = {"one", "two", "three"};

__attribute__((noinline)) int answer(void) {
    return seven;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *frames) {
    if (_Unwind_GetIP(context) != 0)
        ++*(int *)frames;
    return _URC_NO_REASON;
}

__attribute__((noinline)) int frames(void) {
    int n = 0;
    _Unwind_Backtrace(step, &n);
    return n;
}

#ifdef EXPORTED
/* Whether answer() is found by its name, and its name from where its code stands now. */
static int is_named(void) {
    unsigned char *at = (unsigned char *)answer;
    int distance;
    Dl_info info;
    memcpy(&distance, at + 1, 4);
    if (*at == 0xe9)
        at += 5 + distance;
    return dladdr(at, &info) && info.dli_sname && strcmp(info.dli_sname, "answer") == 0 &&
           dlsym(RTLD_DEFAULT, "answer") == (void *)answer && dlsym(RTLD_DEFAULT, "seven") == (void *)&seven;
}
#else
#define is_named() 1
#endif

int main(int argc, char **argv) {
    if (!is_named())
        return 4;
    char *small = malloc(100), *large = malloc(300000);
    memset(small, 1, 100);
    memset(large, 2, 300000);
    void *old = sbrk(0);
    if (sbrk(65536) == (void *)-1 || sbrk(0) == old)
        return 2;
    memset(old, 3, 65536);
    for (int i = 0; i < 5000; i++)
        if (zero[i] != 0)
            return 3;
    zero[argc] = small[99] + large[299999];
    int first = answer(), second = answer();
    printf("%d %d %s %d %d %s\n", first, second, words[zero[argc] - 1], counted, frames() >= 2,
           argc > 1 ? argv[1] : "-");
    return 5;
}

#ifdef OWN_START
/* Without the usual start files there is no note behind the program headers. */
__attribute__((used)) static void start(long *stack) {
    exit(main((int)*stack, (char **)(stack + 1)));
}
__asm__(".globl _start\n.type _start, @function\n_start: xor %ebp, %ebp\nmov %rsp, %rdi\nand $-16, %rsp\n"
        "call start\n.size _start, .-_start");
#endif
