	.text
	.macro function name
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

	.p2align 4
function add_header
	testl $1, %edi
	je 1f
	addl $100, %edi
1:	addl $1000, %edi
end add_header
function add_body
	imull $3, %edi, %edi
	cmpl $50, %edi
	jb 1f
	xorl $0xff, %edi
1:
end add_body
function add_tail
	leal 9(%rdi), %eax
	ret
end add_tail

/* An unwind entry covers the middle of it only, and ends in a nop behind which control goes on. */
	.p2align 4
	.globl half_covered
	.type half_covered, @function
half_covered:
	movl %edi, %eax
	testl $1, %edi
	jne 2f
	.cfi_startproc
	addl $7, %eax
	testl $2, %eax
	jne 1f
	notl %eax
1:	addl $10, %eax
	nop
	.cfi_endproc
2:	addl $1000, %eax
	ret
	.size half_covered, . - half_covered
	.section .note.GNU-stack,"",@progbits
