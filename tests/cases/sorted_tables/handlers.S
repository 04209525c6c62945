/* Functions in the order of their names, with a table that the assembler fills in the same order. */
	.macro handler number
	.section .text
	.p2align 4
	.type handler\number, @function
handler\number:
	.cfi_startproc
	leal (\number * 3 + 1)(%rdi,%rdi), %eax
	testl $1, %edi
	jne 1f
	ret
1:	addl $\number, %eax
	ret
	.cfi_endproc
	.size handler\number, . - handler\number
	.section .data.rel.ro, "aw", @progbits
	.quad handler\number
	.endm

	.section .data.rel.ro, "aw", @progbits
	.globl handlers, handlers_end, named, unsearched
	.p2align 4
handlers:
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	handler \number
	.endr
handlers_end:
	.quad 0

/* As a bisecting program has it that also names its rows: an address and a number each. */
	.macro place number
	.section .text
	.p2align 4
	.type place\number, @function
place\number:
	.cfi_startproc
	leal (\number * 5 + 2)(%rdi), %eax
	ret
	.cfi_endproc
	.size place\number, . - place\number
	.section .data.rel.ro, "aw", @progbits
	.quad place\number, \number
	.endm

	.section .data.rel.ro, "aw", @progbits
	.p2align 4
named:
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7
	place \number
	.endr
	.quad 0

/* In order by accident, and never searched. */
	.macro free number
	.section .text
	.p2align 4
	.type free\number, @function
free\number:
	.cfi_startproc
	leal (\number * 7 + 3)(%rdi), %eax
	ret
	.cfi_endproc
	.size free\number, . - free\number
	.section .data.rel.ro, "aw", @progbits
	.quad free\number
	.endm

	.section .data.rel.ro, "aw", @progbits
	.zero 128
	.p2align 4
unsearched:
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7
	free \number
	.endr
	.quad 0
	.section .note.GNU-stack, "", @progbits
