/* gcc's -fsplit-stack: functions ask for more stack when there is little left, by a call that returns to one byte behind its
   return address. */
#include "case.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

NOINLINE unsigned deep(unsigned n) {
    volatile unsigned char room[300];
    memset((void *)room, (int)n, sizeof room);
    return n == 0 ? 0 : deep(n - 1) + room[n % 300] % 3;
}

static void *thread(void *argument) {
    printf("%u\n", deep(60000));
    return argument;
}

int main(void) {
    pthread_t id;
    pthread_create(&id, NULL, thread, NULL);
    pthread_join(id, NULL);
    printf("%u\n", deep(20));
    return 0;
}
