/* Reads a text and classifies, counts and sorts its words. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct word {
    struct word *next;
    unsigned count, hash;
    char text[24];
};

struct shape {
    const char *name;
    int (*fits)(const char *);
    void (*note)(struct word *);
};

static struct word *buckets[64];
static unsigned noted[4];

NOINLINE static unsigned hash(const char *text) {
    unsigned h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

NOINLINE static struct word *find(const char *text, int length) {
    char copy[24];
    if (length >= (int)sizeof copy)
        length = sizeof copy - 1;
    memcpy(copy, text, (size_t)length);
    copy[length] = 0;
    unsigned h = hash(copy);
    struct word **slot = &buckets[h % 64];
    for (; *slot; slot = &(*slot)->next)
        if ((*slot)->hash == h && !strcmp((*slot)->text, copy))
            return *slot;
    struct word *made = calloc(1, sizeof *made);
    if (!made) {
        perror("words");
        exit(2);
    }
    made->hash = h;
    strcpy(made->text, copy);
    return *slot = made;
}

static int is_short(const char *t) { return strlen(t) < 4; }
static int is_number(const char *t) { return isdigit((unsigned char)*t) != 0; }
static int is_any(const char *t) { return *t != 0; }
static void note_short(struct word *w) { noted[0] += w->count; }
static void note_number(struct word *w) { noted[1] += w->count * 2; }
static void note_any(struct word *w) { noted[2] += w->count; noted[3] ^= w->hash; }

static const struct shape shapes[] = {
    {"number", is_number, note_number},
    {"short", is_short, note_short},
    {"any", is_any, note_any},
};

NOINLINE int weight(int c) {
    switch (c) {
    case 'a': return 1;
    case 'b': return 17;
    case 'c': return 5 + c;
    case 'd': return c * 3;
    case 'e': return c ^ 9;
    case 'f': return -c;
    case 'g': case 'h': return c << 2;
    case 'i': return 33;
    case 'j': return c % 7;
    case 'k': return 1000;
    case 'l': return c - 4;
    case 'm': return 12;
    case 'n': return c * c;
    case 'o': return 2;
    case 'z': return 26;
    default: return 0;
    }
}

NOINLINE static long weigh(const char *text) {
    long sum = 0;
    while (*text)
        sum = sum * 3 + weight(*text++);
    return sum;
}

static int by_count(const void *a, const void *b) {
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->text, y->text);
}

NOINLINE static void scan(const char *text) {
    while (*text) {
        while (*text && !isalnum((unsigned char)*text))
            text++;
        const char *start = text;
        while (isalnum((unsigned char)*text))
            text++;
        if (text > start)
            find(start, (int)(text - start))->count++;
    }
}

NOINLINE static double mean(struct word **words, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += words[i]->count * 1.5 / (i + 1);
    return n ? sum / n : 0;
}

int main(void) {
    scan("the cat and the dog saw 42 birds; the birds saw 7 cats and 42 dogs in a garden of the old house "
         "by an uncommonlylongandunbrokenword near the sea, and nobody knows how many of them came back");
    struct word *all[128];
    int n = 0;
    for (int i = 0; i < 64; i++)
        for (struct word *w = buckets[i]; w && n < 128; w = w->next)
            all[n++] = w;
    qsort(all, (size_t)n, sizeof *all, by_count);
    for (int i = 0; i < n; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            if (shapes[s].fits(all[i]->text)) {
                shapes[s].note(all[i]);
                break;
            }
    for (int i = 0; i < 8 && i < n; i++)
        printf("%-24s %u %ld\n", all[i]->text, all[i]->count, weigh(all[i]->text));
    printf("%u %u %u %08x %.3f\n", noted[0], noted[1], noted[2], noted[3], mean(all, n));
    return 0;
}
