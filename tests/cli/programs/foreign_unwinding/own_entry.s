# Calls what it is given. No other function here has a common entry like this one's, which the test changes.
    .text
    .globl through
    .type through, @function
through:
    .cfi_startproc
    .cfi_signal_frame
    subq $8, %rsp
    .cfi_def_cfa_offset 16
    movq %rdi, %rax
    movl %esi, %edi
    call *%rax
    addq $8, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size through, .-through
    .section .note.GNU-stack, "", @progbits
