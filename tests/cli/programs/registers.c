/* Ends well if every register is zero where it starts, as the kernel leaves them, and the stack begins with the number of arguments. */
void end(int status) {
    __asm__ volatile("syscall" : : "a"(60), "D"(status));
    __builtin_unreachable();
}

__asm__(".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "    or %rcx, %rax\n"
        "    or %rdx, %rax\n"
        "    or %rsi, %rax\n"
        "    or %rdi, %rax\n"
        "    or %r11, %rax\n"
        "    or %r8, %rax\n"
        "    or %r9, %rax\n"
        "    or %r10, %rax\n"
        "    or %rbx, %rax\n"
        "    mov (%rsp), %rcx\n"
        "    dec %rcx\n"
        "    or %rcx, %rax\n"
        "    xor %edi, %edi\n"
        "    test %rax, %rax\n"
        "    setne %dil\n"
        "    call end\n"
        "    hlt\n"
        ".size _start, .-_start\n");
