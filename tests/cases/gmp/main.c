/* GMP's hand-written assembly: functions that begin in the middle of others and jump into each other's tails, and loops
   entered through tables of distances and through addresses worked out from the number of rounds. */
#include <gmp.h>
#include <stdio.h>

enum { PRIME = 1000003 };

/* A number of so many bits, the same everywhere. */
static void number(mpz_t result, unsigned bits, unsigned seed) {
    mpz_set_ui(result, seed);
    while (mpz_sizeinbase(result, 2) < bits) {
        mpz_mul_ui(result, result, 6364136223846793005u);
        mpz_add_ui(result, result, seed);
    }
    mpz_fdiv_r_2exp(result, result, bits);
}

static void print(const char *name, unsigned bits, const mpz_t result) {
    printf("%s %u %lu\n", name, bits, mpz_fdiv_ui(result, PRIME));
}

int main(void) {
    mpz_t a, b, c, d;
    mpz_inits(a, b, c, d, NULL);
    for (unsigned bits = 40; bits < 60000; bits = bits * 13 / 8) {
        number(a, bits, 7);
        number(b, bits / 2 + 9, 11);
        mpz_mul(c, a, b);
        print("product", bits, c);
        mpz_mul(d, a, a);
        print("square", bits, d);
        mpz_add(c, c, d);
        mpz_sub(c, c, b);
        mpz_tdiv_qr(c, d, c, b);
        print("quotient", bits, c);
        print("remainder", bits, d);
        mpz_tdiv_q_2exp(c, a, 13);
        mpz_mul_2exp(c, c, 37);
        print("shifted", bits, c);
        mpz_gcd(d, c, b);
        print("common", bits, d);
        mpz_sqrt(d, a);
        print("root", bits, d);
        if (bits < 4000) {
            mpz_setbit(b, 0);
            mpz_powm(d, a, c, b);
            print("power", bits, d);
        }
        printf("bits %lu\n", mpz_popcount(a));
    }
    mpz_ui_pow_ui(a, 3, 20000);
    mpz_fac_ui(b, 5000);
    mpz_mod(c, b, a);
    char *text = mpz_get_str(NULL, 10, a);
    printf("%.60s %lu\n", text, mpz_fdiv_ui(c, PRIME));
    return 0;
}
