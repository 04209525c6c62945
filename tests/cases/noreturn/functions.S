/* A loop through a table whose address is worked out before the loop. A jump that nothing comes to, behind a call that
   does not return, leads into the loop as well, and stands in front of what works the address out. */
#include "assembly.h"
    .text
    .p2align 4
/* Of the same function, and right in front of it. */
    .type loops_by_table.cold, @function
loops_by_table.cold:
    .cfi_startproc
    .cfi_adjust_cfa_offset 24
    .cfi_offset %rbx, -16
    .cfi_offset %r15, -24
    .cfi_offset %r14, -32
    mov $6, %edi
    call give_up
    .cfi_endproc
    .size loops_by_table.cold, . - loops_by_table.cold
function loops_by_table, 0        /* unsigned (unsigned) */
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbx, -16
    push %r15
    .cfi_adjust_cfa_offset 8
    .cfi_offset %r15, -24
    push %r14
    .cfi_adjust_cfa_offset 8
    .cfi_offset %r14, -32
    mov %edi, %ebx
    cmp $77, %edi
    je loops_by_table.cold
    test %edi, %edi
    jns 4f
    mov $5, %edi
    call give_up
    jmp 2f
1:  mov %ebx, %eax
    and $3, %eax
    movslq (%r15,%rax,4), %rax
    add %r15, %rax
    jmp *%rax
10: add $7, %ebx
    jmp 3f
11: lea 1(%rbx,%rbx,2), %ebx
    jmp 3f
2:
12: inc %ebx
    jmp 3f
13: xor $21, %ebx
3:  dec %r14d
    jnz 1b
    mov %ebx, %eax
    pop %r14
    .cfi_remember_state
    .cfi_adjust_cfa_offset -8
    pop %r15
    .cfi_adjust_cfa_offset -8
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_restore_state
4:  lea table(%rip), %r15
    mov $5, %r14d
    jmp 1b
end loops_by_table

    .section .rodata
    .p2align 2
table:
    .long 10b - table, 11b - table, 12b - table, 13b - table

    .section .note.GNU-stack, "", @progbits
