/* A jump's target waits in a word of the stack frame that holds other things before and behind it, as clang spills registers:
   numbers that are counted down, and values that a call gave. */
#include "assembly.h"
    .text

/* The target is worked out in front of a loop, and jumped to in each of its rounds. */
function each_round             /* unsigned (unsigned value, unsigned rounds, unsigned way) */
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    sub $32, %rsp
    .cfi_adjust_cfa_offset 32
    mov %esi, %ebx
    movq $5, 8(%rsp)
1:  rol $3, %edi
    xor $0x1234567, %edi
    decq 8(%rsp)
    jnz 1b
    and $3, %edx
    lea ways(%rip), %rcx
    movslq (%rcx,%rdx,4), %rdx
    add %rcx, %rdx
    mov %rdx, 8(%rsp)
    jmp 3f
2:  dec %ebx
    jz 8f
3:  call twist
    mov %eax, %edi
    jmp *8(%rsp)
.Ladd_it: add $12345, %edi
    jmp 2b
.Lflip_it: xor $0x5555, %edi
    jmp 2b
.Ltimes_it: imul $77, %edi, %edi
    jmp 2b
.Ltake_it: sub %ebx, %edi
    jmp 2b
8:  call twist
    mov %rax, 8(%rsp)
    incq 8(%rsp)
    mov 8(%rsp), %rax
    add $32, %rsp
    .cfi_adjust_cfa_offset -32
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
end each_round

/* The same through a register, and a second table of which the target goes through the same word. */
function two_tables             /* unsigned (unsigned value, unsigned rounds, unsigned way) */
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    sub $32, %rsp
    .cfi_adjust_cfa_offset 32
    mov %esi, %ebx
    mov %rdi, 8(%rsp)
    and $1, %edx
    lea first(%rip), %rcx
    movslq (%rcx,%rdx,4), %rax
    addl $99, 8(%rsp)
    mov 8(%rsp), %edi
    add %rcx, %rax
    mov %rax, 8(%rsp)
1:  call twist
    mov %eax, %edi
    mov 8(%rsp), %rax
    test %ebx, %ebx
    jmp *%rax
.Lmore: add $4, %edi
.Lless: sub $1, %edi
    dec %ebx
    jns 1b
    mov %edi, %edx
    and $1, %edx
    lea second(%rip), %rcx
    movslq (%rcx,%rdx,4), %rax
    add %rcx, %rax
    mov %rax, 8(%rsp)
    call twist
    mov %eax, %edi
    jmp *8(%rsp)
.Lturned: not %edi
.Ldone: mov %edi, %eax
    add $32, %rsp
    .cfi_adjust_cfa_offset -32
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
end two_tables

/* The target comes from a table on one way, and is a label with a distance on the other: that distance does not follow. */
function computed_one_way       /* unsigned (unsigned value, unsigned rounds, unsigned way) */
    sub $24, %rsp
    .cfi_adjust_cfa_offset 24
    mov %rdi, 8(%rsp)
    and $3, %edx
    jz 1f
    lea third(%rip), %rcx
    movslq (%rcx,%rdx,4), %rax
    add %rcx, %rax
    mov %rax, 8(%rsp)
    jmp 2f
1:  lea .Lfirst_way(%rip), %rax
    add $(.Llast_way - .Lfirst_way), %rax
    mov %rax, 8(%rsp)
2:  call twist
    jmp *8(%rsp)
.Lfirst_way:
    add $1, %eax
.Lmiddle_way:
    xor $0x77777777, %eax
    jmp .Lleave
.Llast_way:
    rol $7, %eax
.Lleave:
    add $24, %rsp
    .cfi_adjust_cfa_offset -24
    ret
end computed_one_way

function twist                  /* unsigned (unsigned) */
    imul $1664525, %edi, %eax
    add $1013904223, %eax
    ret
end twist

    .section .rodata
    .p2align 2
ways:
    .long .Ladd_it - ways, .Lflip_it - ways, .Ltimes_it - ways, .Ltake_it - ways
first:
    .long .Lmore - first, .Lless - first
second:
    .long .Lturned - second, .Ldone - second

third:
    .long .Llast_way - third, .Lmiddle_way - third, .Lfirst_way - third, .Llast_way - third

    .section .note.GNU-stack, "", @progbits
