# void run(void *code): loads registers and flags from `in`, executes the code, which jumps to `done`, and stores them to `out`.
    .text
    .globl run, done
run:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, stack
    mov %rdi, target
    pushq in+128
    popfq
    pxor %xmm0, %xmm0
    pxor %xmm1, %xmm1
    mov in, %rax
    mov in+8, %rcx
    mov in+16, %rdx
    mov in+24, %rbx
    mov in+40, %rbp
    mov in+48, %rsi
    mov in+56, %rdi
    mov in+64, %r8
    mov in+72, %r9
    mov in+80, %r10
    mov in+88, %r11
    mov in+96, %r12
    mov in+104, %r13
    mov in+112, %r14
    mov in+120, %r15
    jmp *target
done:
    mov %rax, out
    mov %rcx, out+8
    mov %rdx, out+16
    mov %rbx, out+24
    mov %rbp, out+40
    mov %rsi, out+48
    mov %rdi, out+56
    mov %r8, out+64
    mov %r9, out+72
    mov %r10, out+80
    mov %r11, out+88
    mov %r12, out+96
    mov %r13, out+104
    mov %r14, out+112
    mov %r15, out+120
    mov stack, %rsp
    pushfq
    popq out+128
    cld
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .bss
    .globl in, out
    .p2align 4
in: .skip 136
out: .skip 136
stack: .skip 8
target: .skip 8
    .section .note.GNU-stack,"",@progbits
