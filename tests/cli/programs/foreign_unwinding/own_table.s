# The same with an entry under an augmentation that nobody knows, which linkers do not put into a search table.
    .text
    .globl through
    .type through, @function
through:
    subq $8, %rsp
    movq %rdi, %rax
    movl %esi, %edi
    call *%rax
    addq $8, %rsp
    ret
.Lend:
    .size through, .-through

    .section .eh_frame, "a", @progbits
.Lcommon:
    .long .Lcommon_end - .Lcommon_id
.Lcommon_id:
    .long 0
    .byte 1
    .string "xyz"
    .uleb128 1
    .sleb128 -8
    .byte 16
    .byte 0x0c, 7, 8, 0x90, 1
    .balign 8
.Lcommon_end:
    .long .Lentry_end - .Lentry_common
.Lentry_common:
    .long .Lentry_common - .Lcommon
    .quad through
    .quad .Lend - through
    .balign 8
.Lentry_end:
    .section .note.GNU-stack, "", @progbits
