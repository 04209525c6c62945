/* Both streams, standard input, arguments, the environment, its own path and an exit code: nothing that a program can see of itself may
   change. */
#include "case.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char line[80];
    unsigned count = 0;
    printf("%s with %d\n", argv[0], argc);
    for (int i = 1; i < argc; i++)
        printf("argument %s\n", argv[i]);
    while (fgets(line, sizeof line, stdin)) {
        count++;
        fprintf(stderr, "%u: %s", count, line);
    }
    printf("%s\n", getenv("CASE_VARIABLE") ? getenv("CASE_VARIABLE") : "unset");
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    printf("%d\n", n > 0 && path[0] == '/');
    for (int fd = 3; fd < 20; fd++)
        if (fcntl(fd, F_GETFD) != -1)
            printf("descriptor %d is open\n", fd);
    return (int)count + 200;
}
