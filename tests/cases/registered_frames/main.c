/* A static program without a search table of unwind entries registers those behind its start files'. So nobody finds the entry
   of _start, which says that no caller is known there: the walk ends at _start itself, and not at a frame without an address. */
#include "case.h"
#include <stdint.h>
#include <stdio.h>
#include <unwind.h>

struct walk { unsigned frames; uintptr_t last; };

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *argument) {
    struct walk *walk = argument;
    walk->frames++;
    walk->last = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

NOINLINE unsigned frames_from(unsigned n) {
    struct walk walk = {0, 0};
    if (n)
        return frames_from(n - 1) + 0 * opaque(n);
    _Unwind_Backtrace(one_frame, &walk);
    printf("%s\n", walk.last ? "ends with code" : "ends with nothing");
    return walk.frames;
}

int main(void) {
    unsigned frames = frames_from(0);
    printf("%u\n", frames_from(3) - frames);
    return 0;
}
