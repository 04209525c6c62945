/* Behind a table of distances stands one of addresses, which is read from a place in front of it: in the first table. */
#include "assembly.h"
    .text
    .p2align 4
function by_distance            /* unsigned (unsigned) */
    mov %edi, %eax
    and $1, %edi
    lea distances(%rip), %rcx
    movslq (%rcx,%rdi,4), %rdx
    add %rcx, %rdx
    jmp *%rdx
1:  add $3, %eax
    ret
2:  lea 5(%rax,%rax,2), %eax
    ret
end by_distance

    .p2align 4
function by_address             /* unsigned (unsigned) */
    mov %edi, %eax
    and $1, %edi
#ifdef __PIC__
    jnz 4f
#else
    add $1, %rdi
    mov addresses-4(,%rdi,4), %edx
    jmp *%rdx
#endif
3:  add $7, %eax
    ret
4:  lea 9(%rax,%rax,4), %eax
    ret
end by_address

    .section .rodata
    .p2align 2
distances:
    .long 1b - distances, 2b - distances
#ifndef __PIC__
addresses:
    .long 3b, 4b
#endif

    .section .note.GNU-stack, "", @progbits
