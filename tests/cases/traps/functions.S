/* Instructions that raise a signal, behind which a handler goes on: in front of a place that is jumped to, in front of data, at
   the end of a function, and where registers and flags are there only for the handler. */
#include "assembly.h"
    .text
    .p2align 4
function in_the_middle, 0          /* int (int) */
    mov %edi, %eax
    test $1, %dil
    jz 1f
    ud2
1:  add $10, %eax
    test $2, %dil
    jz 2f
    int3
2:  lea (%rax,%rax,2), %eax
    test $4, %dil
    jz 3f
    hlt
3:  add $1000, %eax
    test $8, %dil
    jz 4f
    ud1 %eax, %ecx
4:  xor $0x55, %eax
    ret
end in_the_middle

    .p2align 4
function faults, 0                 /* int (int, int *): a handler leaves out what cannot be read */
    mov $7, %eax
    test %edi, %edi
    jz 1f
    mov (%rsi), %eax
1:  add %edi, %eax
    jns 2f
    neg %eax
2:  ret
end faults

    .p2align 4
function leaves_out, 0             /* int (int, int *): what the access would have overwritten is still there */
    lea 3(%rdi), %eax
    test $1, %dil
    js 1f
    mov (%rsi), %eax
1:  setz %dl
    movzbl %dl, %edx
    lea (%rax,%rdx,2), %eax
    ret
end leaves_out

    .p2align 4
function goes_elsewhere, 0         /* int (int, int *): a table tells the handler where to go on */
    lea 5(%rdi), %edx
    test $1, %dil
    js 1f
may_fault:
    mov (%rsi), %eax
    mov $0, %edx
    setz %dl
    add %edx, %eax
1:  ret
fix:
    mov %edx, %eax
    ret
end goes_elsewhere

    .pushsection .data.rel.ro, "aw", @progbits
    .p2align 3
    .globl fixes
    .type fixes, @object
    .size fixes, 16
fixes:
    .quad may_fault, fix
    .popsection

    .p2align 4
function continued, 0              /* int (int): its other part stands right behind its last trap */
    lea 7(%rdi), %eax
    test $1, %dil
    jnz continued.cold
    test $2, %dil
    jz 1f
    ud2
1:  ret
    ud2
end continued
    .type continued.cold, @function
continued.cold:
    .cfi_startproc
    ud2
    add $3, %eax
    ret
    .cfi_endproc
    .size continued.cold, . - continued.cold

    .p2align 4
function data_behind, 0            /* int (int): the handler reads the number and goes on behind it */
    mov %edi, %eax
    test $1, %dil
    jz 1f
    add $3, %eax
    ud2
    .byte 0xa9                  /* as code: test $0x12345678, %eax */
    .long 0x12345678
    nopl 0x44(%rax,%rax)
    add $4, %eax
1:  add $5, %eax
    ret
end data_behind

    .p2align 4
function jumps_to_itself, 0        /* int (int): data that reads as a jump to itself, which then seems to be named */
    mov %edi, %eax
    test $1, %dil
    jz 1f
    ud2
    .byte 0x93, 0x71, 0xfe, 0x90, 0x90
    add $0x47cfa9e, %eax
1:  rol $7, %eax
    ret
end jumps_to_itself

    .p2align 4
function leaves_behind, 0          /* int (int): read as code with the data, the addition ends in a jump */
    mov %edi, %eax
    test $1, %dil
    jz 1f
    ud2
    .byte 0x90, 0x9e, 0x9d, 0x3d, 0xbe
    add $0x27ff10a7, %eax
1:  rol $4, %eax
    ret
end leaves_behind

    .p2align 4
function jumps_behind, 0           /* int (int): data that reads as jumps */
    mov %edi, %eax
    ud2
    .byte 0x74, 0, 0x75, 0, 0x90
    ret
end jumps_behind

    .p2align 4
function runs_on, 0                /* int (int): goes on in the next function */
    lea 1(%rdi), %eax
    test $1, %dil
    jz 1f
    inc %eax
1:  int3
end runs_on
function run_into, 0               /* int (): adds to eax */
    add $5, %eax
    ret
end run_into

    .p2align 4
function shows_all, 0              /* void (int): the handler sees every register and flag */
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    push %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    push %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    push %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    push %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    mov $0x1111, %eax
    mov $0x2222, %ebx
    mov $0x3333, %ecx
    mov $0x4444, %edx
    mov $0x5555, %esi
    mov $0x6666, %ebp
    mov $0x8888, %r8d
    mov $0x9999, %r9d
    mov $0xaaaa, %r10d
    mov $0xbbbb, %r11d
    mov $0xcccc, %r12d
    mov $0xdddd, %r13d
    mov $0xeeee, %r14d
    mov $0xffff, %r15d
    cmp $3, %edi
    je 1f
    int3
1:  cmp $5, %edi
    jb 2f
    hlt
2:  cmp $7, %edi
    jg 3f
    ud2
3:  cmp $9, %edi
    jo 4f
    mov 0, %eax                 /* faults, and the handler leaves it out */
4:  cmp $11, %edi
    jp 5f
    ud2
    nop
5:  pop %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    pop %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    pop %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    pop %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r12
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
end shows_all

/* Behind the trap half of a label's address is taken, or of what was worked out before; nothing reads it. */
function labels_behind, 0          /* unsigned (unsigned) */
    leaq 1f(%rip), %rax
    leaq 2f(%rip), %rcx
    movq %rax, -16(%rsp)
    movq %rcx, -8(%rsp)
    movl %edi, %edx
    andl $1, %edx
    cmpl $100, %edi
    ja 3f
    jmp *-16(%rsp, %rdx, 8)
3:  ud2
4:  movl %eax, %esi
1:  leal 3(%rdi, %rdi), %eax
    movl %eax, %edi
    cmpl $50, %eax
    jb 4b
    ret
2:  leal 9(%rdi), %eax
    ret
end labels_behind

    .section .note.GNU-stack,"",@progbits
