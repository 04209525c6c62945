// Data among the code: constants that are loaded from behind the function, and between two of its parts.
    .text
    .globl pool
    .type pool, %function
    .p2align 2
pool:
    .cfi_startproc
    cbz w0, 2f
    ldr w1, 1f
    ldr x2, =0x123456789abcdef0
    add w0, w0, w1
    b 3f
1:  .word 0xffffffff
2:  mov w0, 7
3:  add x0, x0, x2
    ret
    .cfi_endproc
    .ltorg
    .size pool, .-pool
