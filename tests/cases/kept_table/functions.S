/* A table's address stays in a register for a whole loop, and is moved to another and back in so many places, each of which may be
   passed over, that there are a million ways by which it may have come to the jump. */
#include "assembly.h"
    .text
    .p2align 4
function kept                   /* unsigned (unsigned value, unsigned rounds) */
    push %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    push %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    lea ways(%rip), %r14
.Lround:
    .rept 22
    rol $1, %edi
    jnc 1f
    mov %r14, %r13
    mov %r13, %r14
1:
    .endr
    mov %edi, %eax
    and $3, %eax
    movslq (%r14,%rax,4), %rax
    add %r14, %rax
    jmp *%rax
2:  add $12345, %edi
    jmp 6f
3:  xor $0x5555, %edi
    jmp 6f
4:  imul $77, %edi, %edi
    jmp 6f
5:  sub %esi, %edi
6:  dec %esi
    jnz .Lround
    mov %edi, %eax
    pop %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    pop %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    ret
end kept

    .section .rodata
    .p2align 2
ways:
    .long 2b - ways, 3b - ways, 4b - ways, 5b - ways

    .section .note.GNU-stack, "", @progbits
