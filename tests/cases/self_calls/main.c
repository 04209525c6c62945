/* A function with a jump table that may call itself by its address, as printers of syntax trees do, and one that keeps its address on the stack for
   that: no arithmetic with it, so both move. */
#include "case.h"
#include <stdio.h>

struct node { int kind; const struct node *left, *right; };
typedef unsigned visit(unsigned depth, const struct node *node);

NOINLINE visit tree;
NOINLINE visit kept;

NOINLINE unsigned block(unsigned depth, const struct node *node) {
    return node->left ? mix(depth, tree(depth + 1, node->left)) : depth;
}

NOINLINE unsigned tree(unsigned depth, const struct node *node) {
    visit *left = tree, *right = tree;
    unsigned sum = depth;
    switch (node->kind) {
    case 0: sum = mix(sum, 3); break;
    case 1: sum = mix(sum, 71) ^ 5; break;
    case 2: left = block; break;
    case 3: right = block; break;
    case 4: sum += 1 + mix(sum, 9); break;
    case 5: sum = block(sum, node); break;
    case 6: sum = kept(sum, node); break;
    }
    if (node->left)
        sum = mix(sum, left(depth + 1, node->left));
    if (node->right)
        sum = mix(sum, right(depth + 1, node->right));
    return sum;
}

NOINLINE unsigned kept(unsigned depth, const struct node *node) {
    visit *volatile next = kept;
    unsigned sum = depth;
    switch (node->kind & 7) {
    case 0: sum = mix(sum, 30); break;
    case 1: sum = mix(sum, 710) ^ 5; break;
    case 2: next = block; break;
    case 3: sum ^= 0x300; break;
    case 4: sum += 10 + mix(sum, 9); break;
    case 6: sum *= 7; break;
    }
    return node->left ? mix(sum, next(depth + 1, node->left)) : sum;
}

int main(void) {
    static const struct node leaf[] = {{0, 0, 0}, {1, 0, 0}, {4, 0, 0}};
    static const struct node low[] = {{2, &leaf[0], &leaf[1]}, {3, &leaf[2], &leaf[1]}, {6, &leaf[1], 0}};
    static const struct node high[] = {{5, &low[0], &low[1]}, {3, &low[2], &low[0]}};
    static const struct node root = {6, &high[0], &high[1]};
    printf("%08x %08x\n", tree(1, &root), kept(2, &high[1]));
    return 0;
}
