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
function nothing
	ret
end nothing
function nothing_more
	ret
end nothing_more
function same
	movl %edi, %eax
	ret
end same
function one
	pushq $1
	.cfi_adjust_cfa_offset 8
	popq %rax
	.cfi_adjust_cfa_offset -8
	ret
end one
function minus
	leal -1(%rdi), %eax
	ret
end minus
function larger
	leal 300(%rdi), %eax
	jmp same_tail
end larger
function same_tail
	ret
end same_tail
function carry
	sbbl %eax, %eax
	xorl %eax, %eax
	ret
end carry
	.section .note.GNU-stack,"",@progbits
