/* OpenSSL's hand-written assembly: texts and tables between functions, code in macros without sizes, one function inside
   another, jumps from one function into the next. */
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <stdio.h>
#include <string.h>

enum { SIZE = 10000 };
static unsigned char text[SIZE], out[SIZE + 64], key[64];

static void print(const char *name, const unsigned char *bytes, size_t size) {
    printf("%s ", name);
    for (size_t i = 0; i < size; i++)
        printf("%02x", bytes[i]);
    puts("");
}

static void digests(void) {
    static const char *const names[] = {"MD5",      "SHA1",     "SHA224",     "SHA256",    "SHA384",
                                        "SHA512",   "SHA3-256", "BLAKE2B512", "BLAKE2S256"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        unsigned size = 0;
        EVP_MD *digest = EVP_MD_fetch(NULL, names[i], NULL);
        for (int length = SIZE; length > 0; length -= 4321)
            if (EVP_Digest(text, length, out, &size, digest, NULL))
                print(names[i], out, size);
        EVP_MD_free(digest);
    }
}

/* What was encrypted, by its digest; decrypted, it has to be the text. */
static void ciphers(void) {
    static const char *const names[] = {"AES-128-CBC", "AES-256-CTR", "AES-256-GCM", "AES-128-OCB",
                                        "ChaCha20",    "ChaCha20-Poly1305", "CAMELLIA-128-CBC"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        static unsigned char back[SIZE + 64];
        unsigned char digest[32], nonce[16] = {1, 0, 0, 0, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
        int size = 0, rest = 0, size_back = 0;
        EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, names[i], NULL);
        EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
        EVP_CipherInit_ex2(context, cipher, key, nonce, 1, NULL);
        EVP_CipherUpdate(context, out, &size, text, SIZE);
        EVP_CipherFinal_ex(context, out + size, &rest);
        EVP_CipherInit_ex2(context, cipher, key, nonce, 0, NULL);
        EVP_CipherUpdate(context, back, &size_back, out, size + rest);
        EVP_Digest(out, size, digest, NULL, EVP_sha256(), NULL);
        if (i == 1 || i == 4)
            print(names[i], digest, sizeof digest);
        printf("%s %s\n", names[i], size_back && !memcmp(text, back, size_back) ? "decrypts" : "is broken");
        EVP_CIPHER_CTX_free(context);
        EVP_CIPHER_free(cipher);
    }
}

static void print_number(const char *name, const BIGNUM *number) {
    int size = BN_bn2bin(number, out);
    EVP_Digest(out, size, out, NULL, EVP_sha256(), NULL);
    print(name, out, 32);
}

static void numbers(void) {
    BIGNUM *base = BN_new(), *power = BN_new(), *modulus = BN_new(), *result = BN_new();
    BN_CTX *context = BN_CTX_new();
    for (int bytes = 64; bytes <= 512; bytes *= 2) {
        BN_bin2bn(text, bytes, base);
        BN_bin2bn(text + 600, bytes, power);
        BN_bin2bn(text + 1300, bytes, modulus);
        BN_set_bit(modulus, 0);
        BN_set_bit(modulus, bytes * 8 - 1);
        BN_mod_exp(result, base, power, modulus, context);
        print_number("power", result);
        BN_mod_exp_mont_consttime(result, base, power, modulus, context, NULL);
        print_number("power in constant time", result);
    }
    static const int curves[] = {NID_X9_62_prime256v1, NID_secp384r1, NID_secp256k1};
    for (unsigned i = 0; i < 3; i++) {
        EC_GROUP *curve = EC_GROUP_new_by_curve_name(curves[i]);
        EC_POINT *point = EC_POINT_new(curve);
        BN_bin2bn(text + 33, 31, power);
        EC_POINT_mul(curve, point, power, NULL, NULL, context);
        EC_POINT_mul(curve, point, NULL, point, power, context);
        EC_POINT_get_affine_coordinates(curve, point, result, base, context);
        print_number("point", result);
        EC_POINT_free(point);
        EC_GROUP_free(curve);
    }
}

int main(void) {
    for (unsigned i = 0; i < SIZE; i++)
        text[i] = (unsigned char)(i * i + i / 7 + 1);
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)(i * 3);
    digests();
    ciphers();
    numbers();
    return 0;
}
