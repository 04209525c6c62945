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
	.section .note.GNU-stack,"",@progbits
