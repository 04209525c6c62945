__attribute__((noinline)) long second(long x) {
    return x ^ base;
}
