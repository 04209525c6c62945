/* Functions of which the very first instruction may fault, and a call at a label. */
#include "assembly.h"
    .text
function safe_load                 /* unsigned (const unsigned *) */
    mov (%rdi), %eax
    ret
end safe_load

function safe_load_failed
    mov $-1, %eax
    ret
end safe_load_failed

function safe_add                  /* unsigned (unsigned, const unsigned *) */
    add (%rsi), %edi
    mov %edi, %eax
    ret
end safe_add

function safe_add_failed
    mov $-2, %eax
    ret
end safe_add_failed

function may_call                  /* unsigned (const struct operations *, unsigned) */
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    mov %rdi, %rax
    mov %esi, %edi
    mov %esi, %ebx
held_call:
    call *8(%rax)
    add %ebx, %eax
1:  pop %rbx
    .cfi_remember_state
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    ret
held_call_failed:
    .cfi_restore_state
    mov $-3, %eax
    jmp 1b
end may_call

    .section .data.rel.ro, "aw", @progbits
    .p2align 3
    .globl held_calls
    .hidden held_calls
    .type held_calls, @object
    .size held_calls, 16
held_calls:
    .quad held_call, held_call_failed
    .section .note.GNU-stack, "", @progbits
