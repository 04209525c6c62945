/* Code is copied from one label to another and run where it was copied to. What lies between the labels must stay whole. */
#include "case.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef unsigned function(unsigned);
extern const unsigned char blob[], blob_end[], piece_start[], piece_end[], first[], first_end[];
extern const unsigned char third[], sized[];
extern const unsigned char *const bounds[4];
unsigned beside(unsigned), whole(unsigned), second(unsigned);

NOINLINE unsigned copied(const unsigned char *from, const unsigned char *to, unsigned x) {
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, from, (size_t)(to - from));
    unsigned result = ((function *)page)(x);
    munmap(page, 4096);
    return result;
}

int main(void) {
    for (unsigned x = 1; x < 400; x += 99)
        printf("%u %u %u %u %u\n", copied(blob, blob_end, x), copied(piece_start, piece_end, x), copied(first, first_end, x),
               copied(bounds[0], bounds[1], x + 1), copied(bounds[2], bounds[3], x));
    for (unsigned x = 1; x < 4; x++)
        printf("%u %u\n", copied(third, sized, x), ((function *)sized)(x));
    printf("%u %u %u %td %td %td\n", beside(5), whole(6), second(7), blob_end - blob, piece_end - piece_start, first_end - first);
    return 0;
}
