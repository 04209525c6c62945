/* Code that runtimes find by distances which no relocation tells: as Go's linker leaves it, and as V8 links its built-in
   functions. */
        .text
        .globl  runtime.text
runtime.text:
        .type   main.twice, @function
main.twice:
        lea     (%rdi,%rdi), %eax
        ret
        .size   main.twice, .-main.twice
        .type   main.cube, @function
main.cube:
        mov     %edi, %eax
        imul    %edi, %eax
        imul    %edi, %eax
        ret
        .size   main.cube, .-main.cube
        .globl  runtime.etext
runtime.etext:

        .globl  between
        .type   between, @function
between:
        .cfi_startproc
        lea     17(%rdi), %eax
        test    $1, %edi
        jz      1f
        not     %eax
1:      ret
        .cfi_endproc
        .size   between, .-between

        .globl  v8_Default_embedded_blob_code_
        .p2align 6
v8_Default_embedded_blob_code_:
        .type   Builtins_Negate, @function
Builtins_Negate:
        .byte   0x89, 0xf8, 0xf7, 0xd8, 0xc3            # mov %edi,%eax; neg %eax; ret
        .size   Builtins_Negate, .-Builtins_Negate
        .p2align 5, 0xcc
        .type   Builtins_Halve, @function
Builtins_Halve:
        .byte   0x89, 0xf8, 0xd1, 0xe8, 0xc3            # mov %edi,%eax; shr %eax; ret
        .size   Builtins_Halve, .-Builtins_Halve
.Lend:

        .section .gopclntab, "a"
        .globl  runtime.pclntab
runtime.pclntab:
        .long   main.twice - runtime.text
        .long   main.cube - runtime.text

        .section .rodata, "a"
        .globl  v8_Default_embedded_blob_code_size_
v8_Default_embedded_blob_code_size_:
        .long   .Lend - v8_Default_embedded_blob_code_
        .globl  v8_Default_embedded_blob_data_
v8_Default_embedded_blob_data_:
        .long   Builtins_Negate - v8_Default_embedded_blob_code_
        .long   Builtins_Halve - v8_Default_embedded_blob_code_
        .section .note.GNU-stack, "", @progbits
