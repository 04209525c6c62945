/* C with -fexceptions: variables with a cleanup, unwound by thread cancellation, pthread_exit and a forced unwind
   through many frames. */
#include "case.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

static unsigned cleaned;
static int ready[2];
static void clean(unsigned *what) { cleaned = mix(cleaned, *what); }
#define CLEANED __attribute__((cleanup(clean)))

NOINLINE void leave(unsigned how) {
    CLEANED unsigned mine = 100 + how;
    if (how == 1)
        pthread_exit(NULL);
    if (how == 2)
        for (;;) {
            char byte = 1;
            if (write(ready[1], &byte, 1) == 1)
                pause();
        }
    mine++;
}
NOINLINE unsigned nested(unsigned depth, unsigned how) {
    CLEANED unsigned mine = depth;
    if (depth == 0) {
        leave(how);
        return mine;
    }
    unsigned below = nested(depth - 1, how);
    if (__builtin_expect(below > 1000000, 0)) {
        CLEANED unsigned rare = below;
        leave(0);
        below ^= rare;
    }
    return below + mine;
}
/* No cleanup: moved like any other function, and unwound through. */
NOINLINE unsigned between(unsigned depth, unsigned how) {
    volatile unsigned room[100];
    room[depth] = nested(depth, how);
    return room[depth] + 1;
}
/* Between two calls of one row of call sites stands a jump, over which another register is dead than where exceptions land. */
static jmp_buf out;
static struct _Unwind_Exception exception;
static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception *e, struct _Unwind_Context *context, void *left) {
    (void)version, (void)class, (void)e, (void)context;
    if ((actions & _UA_END_OF_STACK) || (*(unsigned *)left)-- == 0)
        longjmp(out, 1);
    return _URC_NO_REASON;
}
static unsigned frames;
NOINLINE unsigned deep(unsigned x, unsigned n) {
    CLEANED unsigned mine = x + n;
    if (n == 0) {
        memset(&exception, 0, sizeof exception);
        frames = 4;
        _Unwind_ForcedUnwind(&exception, stop, &frames);
    }
    return deep((x & 65536 ? x : ~x) * 421757731u, n - 1) + mine;
}
NOINLINE unsigned forced(unsigned x) {
    volatile unsigned kept = x;
    if (setjmp(out) == 0)
        return deep(x, x % 5 + 4);
    return kept + cleaned;
}

static void *thread(void *argument) {
    unsigned how = *(unsigned *)argument;
    between(how + 3, how);
    return NULL;
}

int main(void) {
    if (pipe(ready))
        return 1;
    for (unsigned how = 0; how < 3; how++) {
        pthread_t id;
        void *result = NULL;
        pthread_create(&id, NULL, thread, &how);
        if (how == 2) {
            char byte;
            if (read(ready[0], &byte, 1) == 1)
                pthread_cancel(id);
        }
        pthread_join(id, &result);
        printf("%d %08x\n", result == PTHREAD_CANCELED, cleaned);
    }
    printf("%08x\n", forced(opaque(7)));
    return 0;
}
