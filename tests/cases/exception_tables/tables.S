/* Tables of exceptions as gcc and clang write them seldom or never: a base of landing pads, numbers of every width, types as whole
   addresses that the dynamic linker fills, a pad in front of its function's call sites, rows that touch, and a personality routine
   of one's own. Each function calls what it is given with its argument, and says where the exception led. */
        .text

.macro head name
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        .cfi_personality 0x9b, DW.ref.__gxx_personality_v0
.endm
.macro tail name
        .cfi_endproc
        .size   \name, . - \name
.endm
/* Ends the exception in %rax and gives `value`. */
.macro caught value
        mov     %rax, %rdi
        call    __cxa_begin_catch@PLT
        call    __cxa_end_catch@PLT
        mov     $\value, %eax
        pop     %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_def_cfa_offset 16
.endm

/* The landing pad stands in front of the entry's calls; pads count from a base far in front; four bytes a number. */
head with_base
        .cfi_lsda 0x1b, .Lwith_base_data
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        jmp     1f
.Lwith_base_pad:
        cmp     $2, %edx
        je      2f
        caught  1001
2:      caught  1002
1:      mov     %rdi, %rax
        mov     %esi, %edi
.Lwith_base_call:
        call    *%rax
.Lwith_base_end:
        pop     %rbx
        .cfi_def_cfa_offset 8
        ret
tail with_base
        .section .gcc_except_table, "a", @progbits
.Lwith_base_data:
        .byte   0x1b
        .long   with_base - 64 - .
        .byte   0x9b
        .uleb128 .Lwith_base_types - (. + 1)
        .byte   0x03
        .uleb128 13
        .long   .Lwith_base_call - with_base, .Lwith_base_end - .Lwith_base_call, .Lwith_base_pad - with_base + 64
        .uleb128 1
        .byte   2, 1, 1, 0
        .p2align 2
        .long   DW.ref.int - .
        .long   0
.Lwith_base_types:
        .text

/* Types are whole addresses; the dynamic linker fills them in a position-independent program. */
head with_words
        .cfi_lsda 0x1b, .Lwith_words_data
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        mov     %rdi, %rax
        mov     %esi, %edi
.Lwith_words_call:
        call    *%rax
.Lwith_words_end:
        pop     %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_def_cfa_offset 16
.Lwith_words_pad:
        cmp     $1, %edx
        je      2f
        cmp     $3, %edx
        je      3f
        caught  2001
2:      caught  2002
3:      caught  2003
tail with_words
        .section .gcc_except_table.words, "aw", @progbits
.Lwith_words_data:
        .byte   0xff
        .byte   0x00
        .uleb128 .Lwith_words_types - (. + 1)
        .byte   0x0c
        .uleb128 25
        .quad   .Lwith_words_call - with_words, .Lwith_words_end - .Lwith_words_call, .Lwith_words_pad - with_words
        .uleb128 1
        .byte   1, 1, 3, 1, 2, 0
        .p2align 3
        .quad   _ZTId
        .quad   0
        .quad   _ZTIi
.Lwith_words_types:
        .text

/* Rows that touch, with and without a pad, and a row of no bytes; two bytes a number. */
head with_rows
        .cfi_lsda 0x1b, .Lwith_rows_data
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        mov     %rdi, %rbx
        test    $1, %esi
        mov     %esi, %edi
        jz      2f
.Lrow1: call    *%rbx
.Lrow2: jmp     3f
2:      call    *%rbx
.Lrow3:
3:      pop     %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_def_cfa_offset 16
.Lwith_rows_pad:
        caught  3001
tail with_rows
        .section .gcc_except_table, "a", @progbits
.Lwith_rows_data:
        .byte   0xff
        .byte   0x9b
        .uleb128 .Lwith_rows_types - (. + 1)
        .byte   0x02
        .uleb128 21
        .short  .Lrow1 - with_rows, 0, .Lwith_rows_pad - with_rows
        .uleb128 1
        .short  .Lrow1 - with_rows, .Lrow2 - .Lrow1, .Lwith_rows_pad - with_rows
        .uleb128 1
        .short  .Lrow2 - with_rows, .Lrow3 - .Lrow2, 0
        .uleb128 0
        .byte   1, 0
        .p2align 2
        .long   0
.Lwith_rows_types:
        .text

/* What a routine of one's own makes of its table nobody knows. */
        .globl  with_own
        .type   with_own, @function
with_own:
        .cfi_startproc
        .cfi_personality 0x9b, DW.ref.own_personality
        .cfi_lsda 0x1b, .Lwith_rows_data
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        mov     %rdi, %rax
        mov     %esi, %edi
        call    *%rax
        pop     %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_def_cfa_offset 16
.Lwith_own_pad:
        caught  4001
        .globl  own_pad
        .hidden own_pad
        .set    own_pad, .Lwith_own_pad
tail with_own

        .section .data.rel, "aw", @progbits
        .p2align 3
DW.ref.int:
        .quad   _ZTIi
DW.ref.own_personality:
        .quad   own_personality
        .weak   DW.ref.__gxx_personality_v0
        .hidden DW.ref.__gxx_personality_v0
DW.ref.__gxx_personality_v0:
        .quad   __gxx_personality_v0
        .section .note.GNU-stack, "", @progbits
