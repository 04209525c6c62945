/* Words that hold the distance from themselves to a function, or to a label in one, and a constant. */
	.text
	.globl first, second, third, fourth, inner

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

	.p2align 4
	.type fourth, @function
fourth:
	.cfi_startproc
	testl %edi, %edi
	je inner
	leal 4(%rdi,%rdi), %eax
	ret
inner:
	movl $77, %eax
	ret
	.cfi_endproc
	.size fourth, . - fourth
	function last, 5000

	.section .rodata
	.globl words
	.p2align 3
words:
	.long first + 64 - .
	.long 0
	.long second - 4096 - .
	.long 0
	.long third + 0x100000 - .
	.long 0
	.long inner + 32 - .

	.section .note.GNU-stack, "", @progbits
