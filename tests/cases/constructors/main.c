/* What runs before and after main: preinit, constructors and destructors with priorities, atexit, and pointers placed into
   .init_array and .fini_array by hand. */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned order;
static void say(const char *what) {
    order = mix(order, (unsigned char)what[0]);
    printf("%s %08x\n", what, order);
}

__attribute__((constructor(102))) static void second(void) { say("second"); }
__attribute__((constructor(101))) static void first(void) { say("first"); }
__attribute__((constructor)) static void last(void) { say("last"); }
__attribute__((destructor(101))) static void end_last(void) { say("end last"); }
__attribute__((destructor(102))) static void end_second(void) { say("end second"); }
__attribute__((destructor)) static void end_first(void) { say("end first"); }
static void by_hand(int argc, char **argv, char **env) {
    say(argc == 3 && argv[2][0] == 'y' && env ? "by hand, with arguments" : "by hand");
}
static void end_by_hand(void) { say("end by hand"); }
static void at_exit(void) { say("at exit"); }

__attribute__((section(".init_array.00200"), used)) static void (*placed)(int, char **, char **) = by_hand;
__attribute__((section(".fini_array.00200"), used)) static void (*end_placed)(void) = end_by_hand;

int main(int argc, char **argv) {
    atexit(at_exit);
    say(argc > 1 ? argv[1] : "main");
    return (int)(order % 100);
}
