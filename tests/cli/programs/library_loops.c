/* Calls of the C library right in front of loops, which compilers align: padding stands between the call and the loop, and belongs to no block that LLVM's map
   tells of. */
#include <ctype.h>
#include <stdio.h>

static char buffer[64];
static int turn;
static const char *volatile all = "Some Text, and More of it.";
static char *volatile room = buffer;

__attribute__((noinline)) const char *text_of(size_t *size) {
    *size = (size_t)(5 * (turn++ / 2));
    return all;
}
__attribute__((noinline)) char *room_for(size_t size) { return size < sizeof buffer ? room : NULL; }
__attribute__((noinline)) void written(size_t size) { printf("%.*s\n", (int)size, buffer); }

#define LOOP(name, call)                                                                                           \
    __attribute__((noinline)) int name(void) {                                                                     \
        size_t size;                                                                                               \
        const char *text = text_of(&size);                                                                         \
        /* Anybody may change it now, so that it is read again and again. */                                       \
        __asm__ volatile("" : : "r"(&size) : "memory");                                                            \
        char *to = room_for(size);                                                                                 \
        for (size_t i = 0; i < size; i++) to[i] = (char)(*call())[(unsigned char)text[i]];                         \
        written(size);                                                                                             \
        return 1;                                                                                                  \
    }

LOOP(lower, __ctype_tolower_loc)
LOOP(upper, __ctype_toupper_loc)

int main(void) {
    int sum = 0;
    for (int i = 0; i < 4; i++) sum += lower() + upper();
    printf("%d\n", sum);
    return 0;
}
