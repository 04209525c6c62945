/* Behind a table of distances stands one of addresses, which is read from a place in front of it: in the first table. And of one function two
   tables stand in the same register in turn, where control seems to come from one's jump to the other's behind a call that does not return. */
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

    .p2align 4
function by_turns               /* unsigned (unsigned) */
    push %rbx
    .cfi_adjust_cfa_offset 8
    mov %edi, %eax
    and $1, %edi
    lea evens(%rip), %rbx
    cmp $1, %edi
    ja 9f
    movslq (%rbx,%rdi,4), %rdx
    add %rbx, %rdx
    jmp *%rdx
5:  add $3, %eax
    jmp 7f
6:  imul $7, %eax, %eax
7:  lea turns(%rip), %rbx
8:  mov %eax, %ecx
    shr $3, %ecx
    and $1, %ecx
    cmp $1, %ecx
    ja 9f
    movslq (%rbx,%rcx,4), %rdx
    add %rbx, %rdx
    jmp *%rdx
9:  call stops
10: add $5, %eax
    jmp 8b
11: pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
end by_turns

    .p2align 4
function stops
    ud2
end stops

    .section .rodata
    .p2align 2
distances:
    .long 1b - distances, 2b - distances
evens:
    .long 5b - evens, 6b - evens
turns:
    .long 10b - turns, 11b - turns
#ifndef __PIC__
addresses:
    .long 3b, 4b
#endif

    .section .note.GNU-stack, "", @progbits
