/* A function with many blocks and many calls: in place of some of these stand blocks of it, so it is in many runs. FEW: with fewer of both. */
#define F __attribute__((noinline))
static volatile int sink;

F static void stop(int n) {
    sink += n;
}

#define ONE(i) if (sink == i) sink = n * i;
#define FOUR(i) ONE(i) ONE(i + 1) ONE(i + 2) ONE(i + 3)
#define MANY(i) FOUR(i) FOUR(i + 4) FOUR(i + 8) FOUR(i + 12)

/* In the end nobody needs n: debuggers find it by the call. */
F static int work(int n) {
    FOUR(100) FOUR(200)
#ifndef FEW
    MANY(1000) MANY(2000) MANY(3000) MANY(4000)
#endif
    stop(1);
    return sink + 1;
}

#define CALL(i) sink = work(i);
#define CALLS(i) CALL(i) CALL(i + 1) CALL(i + 2) CALL(i + 3)

int main(void) {
    CALLS(10) CALLS(20) CALLS(30) CALLS(40)
#ifndef FEW
    CALLS(50) CALLS(60) CALLS(70) CALLS(80)
#endif
    return sink == 0;
}
