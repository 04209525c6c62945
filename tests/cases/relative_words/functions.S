	.text
	.globl first, second, third

	.macro function name, number
	.p2align 4
	.type \name, @function
\name:
	.cfi_startproc
	leal \number(%rdi), %eax
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm
	function first, 1
	function second, 20
	function third, 300

	.section .rodata
	.globl narrow, wide
/* Each word counts from itself: a place to call, in four bytes and in eight. */
	.p2align 3
narrow:
	.long first - .
	.long second - .
	.long third - .
	.long 0
wide:
	.quad first - .
	.quad second - .

	.section .note.GNU-stack, "", @progbits
