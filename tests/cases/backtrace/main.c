/* The stack walked from several depths, out of split functions, through big frames, a frame without a frame pointer and one
   whose stack grows, by backtrace() and by _Unwind_Backtrace. The program keeps a stack of names beside the real one: a wrong
   unwind row shows as a frame too many, too few or of another name. A fragment may have no name; `plain` and main
   must have theirs. */
#define _GNU_SOURCE
#include "case.h"
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

static const char *shadow[64];
static unsigned depth, traces;
#define ENTER shadow[depth++] = __func__
#define LEAVE depth--

/* Whether the frame at `at` is one of the function that the shadow has at `level`. */
static int is_right(const void *at, unsigned level) {
    Dl_info info;
    const char *expected = shadow[level];
    if (!dladdr(at, &info) || !info.dli_sname)
        return strcmp(expected, "plain") && strcmp(expected, "main");
    if (!strcmp(info.dli_sname, expected))
        return 1;
    printf("%s instead of %s\n", info.dli_sname, expected);
    return 0;
}

struct walk { unsigned frames, right; };

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *argument) {
    struct walk *walk = argument;
    int before = 0;
    unsigned long at = _Unwind_GetIPInfo(context, &before);
    if (walk->frames >= depth)
        return _URC_END_OF_STACK;
    walk->right += (unsigned)is_right((void *)(at - !before), depth - 1 - walk->frames);
    walk->frames++;
    return _URC_NO_REASON;
}

__attribute__((cold)) NOINLINE void show(const char *why) {
    ENTER;
    struct walk walk = {0, 0};
    void *frames[64];
    unsigned right = 0;
    _Unwind_Backtrace(one_frame, &walk);
    unsigned n = (unsigned)backtrace(frames, 64);
    for (unsigned i = 0; i < n && i < depth; i++)
        right += (unsigned)is_right((char *)frames[i] - 1, depth - 1 - i);
    printf("%s: %u deep, %u %u %u right\n", why, depth, walk.frames, walk.right, right);
    traces++;
    LEAVE;
}

NOINLINE unsigned deep(unsigned n, unsigned x) {
    ENTER;
    unsigned result = x;
    if (n == 0)
        show("deep");
    else
        result = mix(deep(n - 1, x + n), n);
    LEAVE;
    return result;
}

NOINLINE unsigned grows(unsigned n, unsigned x) {
    ENTER;
    char *room = alloca(n * 16 + 1);
    memset(room, (int)x, n * 16 + 1);
    if (__builtin_expect(n == 7, 0))
        show("grows");
    unsigned result = deep(n % 3, (unsigned char)room[n]) + (unsigned char)room[n * 8];
    LEAVE;
    return result;
}

NOINLINE unsigned big(unsigned x) {
    volatile unsigned room[5000];
    ENTER;
    for (unsigned i = 0; i < 5000; i += 100)
        room[i] = x + i;
    if (__builtin_expect(x == 5, 0)) {
        show("big");
        room[0] = 99;
    }
    unsigned result = room[100 * (x % 50)] + grows(x, room[0]);
    LEAVE;
    return result;
}

NOINLINE unsigned saves_all(unsigned a, unsigned b, unsigned c, unsigned d) {
    ENTER;
    unsigned e = opaque(a ^ 1), f = opaque(b ^ 2), g = opaque(c ^ 3), h = opaque(d ^ 4);
    for (unsigned i = 0; i < 3; i++) {
        if (__builtin_expect(a + i == 6, 0)) {
            show("saves_all, in its loop");
            e++;
        }
        f += big(a) * g;
        h ^= e + f;
    }
    LEAVE;
    return a + b + c + d + e + f + g + h;
}

NOINLINE unsigned plain(unsigned n) {
    ENTER;
    unsigned result = mix(saves_all(opaque(n), n + 1, n + 2, n + 3), n);
    LEAVE;
    return result;
}

int main(void) {
    unsigned sum = 0;
    ENTER;
    for (unsigned i = 4; i < 8; i++)
        sum = mix(sum, plain(i));
    printf("%u %08x\n", traces, sum);
    return 0;
}
