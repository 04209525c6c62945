/* The four ways to reach a thread-local variable, each in the form that the compiler wrote and the linker rewrote. */
#include "case.h"
#include <pthread.h>
#include <stdio.h>

#define MODEL(m) __attribute__((tls_model(m)))
MODEL("global-dynamic") __thread unsigned dynamic = 5;
static MODEL("local-dynamic") __thread unsigned local_a = 6, local_b;
extern MODEL("initial-exec") __thread unsigned initial;
MODEL("local-exec") __thread unsigned fixed = 8;
extern __thread unsigned elsewhere[4];
unsigned *elsewhere_at(unsigned i);

NOINLINE unsigned use_dynamic(unsigned x) { return dynamic = mix(dynamic, x); }
NOINLINE unsigned use_local(unsigned x) { local_a += x; local_b ^= local_a; return local_a * 3 + local_b; }
NOINLINE unsigned use_initial(unsigned x) { initial = mix(initial, x); return initial; }
NOINLINE unsigned use_fixed(unsigned x) { return fixed = mix(fixed, x); }
NOINLINE unsigned use_elsewhere(unsigned x) { return *elsewhere_at(x % 4) += x; }
NOINLINE unsigned *address_of(unsigned which) { return which ? &local_b : &dynamic; }

static void *work(void *argument) {
    unsigned sum = *(unsigned *)argument;
    for (unsigned i = 0; i < 200; i++) {
        sum = mix(sum, use_dynamic(sum));
        sum = mix(sum, use_local(i));
        sum = mix(sum, use_initial(sum));
        sum = mix(sum, use_fixed(i));
        sum = mix(sum, use_elsewhere(sum));
        sum = mix(sum, *address_of(i % 2) + elsewhere[i % 4]);
    }
    *(unsigned *)argument = sum;
    return NULL;
}

int main(void) {
    unsigned results[4] = {1, 2, 3, 4};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &results[i]);
    work(&results[3]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        printf("%08x\n", results[i]);
    return 0;
}
