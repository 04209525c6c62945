// A switch whose cases are so large that its table has entries of four bytes.
extern int sink[16];
extern int work(int);

#define LINE(n) sink[(n) & 15] += x * (n) + work(n);
#define LINES LINE(1) LINE(2) LINE(3) LINE(4) LINE(5) LINE(6) LINE(7) LINE(8) LINE(9) LINE(10)
#define BULK LINES LINES LINES LINES LINES LINES LINES LINES LINES LINES LINES LINES LINES LINES LINES LINES
#define LARGE(n) case n: LINE(n) BULK BULK LINE(n + 1) break;
__attribute__((noinline)) int large(int x, unsigned y) {
    switch (y) {
        LARGE(0) LARGE(1) LARGE(2) LARGE(3) LARGE(4) LARGE(5) LARGE(6) LARGE(7) LARGE(8) LARGE(9) LARGE(10)
        LARGE(11) LARGE(12) LARGE(13) LARGE(14) LARGE(15) LARGE(16) LARGE(17)
    }
    return sink[5] ^ x;
}
