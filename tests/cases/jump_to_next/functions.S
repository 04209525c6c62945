	.text
	.globl first, second

/* Ends in a jump over nothing, to the next function. What the unwind entry says there of rbx ends with the entry: gcc
   leaves the rule of a register that it has restored. */
	.p2align 4
	.type first, @function
first:
	.cfi_startproc
	pushq %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	leal 1(%rdi), %ebx
	imull $3, %ebx, %edi
	popq %rbx
	.cfi_def_cfa_offset 8
	jmp 1f
	.cfi_endproc
	.size first, . - first

	.type second, @function
second:
	.cfi_startproc
1:	movl %edi, %eax
	xorl $0x77, %eax
	ret
	.cfi_endproc
	.size second, . - second

	.section .note.GNU-stack, "", @progbits
