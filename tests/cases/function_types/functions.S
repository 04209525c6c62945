/* One that looks for the mark in front of what it is given: the number is in its own instruction, eight bytes in front of its end,
   where another function starts as soon as the two stand side by side. */
#include "assembly.h"
    .text
    .p2align 4
function looks, 0                  /* unsigned (function *) */
    movl $0, %eax
    cmpl $0xc105cafe, -8(%rdi)
    sete %al
    ret
end looks

    .skip 16, 0x90
function behind, 0                 /* unsigned (unsigned) */
    leal 5(%rdi), %eax
    ret
end behind

    .section .note.GNU-stack,"",@progbits
