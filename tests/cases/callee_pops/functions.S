/* Functions that take their own argument off the stack, and such as call them with a frame of their own: once the call is back, that frame is
   smaller. What stands behind it in a branch that seldom runs leaves code in place of a call of the function with the wrong frame. */
	.text
	.macro FUNCTION name
	.globl \name
	.p2align 4
	.type \name, @function
\name:
	.cfi_startproc
	.endm
	.macro END name
	.cfi_endproc
	.size \name, . - \name
	.endm
	.macro PUSHED
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	.endm
	.macro REST
	testb $15, %al
	je 1f
	addq $3, %rax
	ret
1:	addq $9, %rax
	ret
	.endm

	/* Directly; as it should be. */
	FUNCTION calls
	PUSHED
	call pops
	.cfi_adjust_cfa_offset -8
	REST
	END calls

	/* By a jump to what does, and rows that do not tell it. */
	FUNCTION calls_on
	PUSHED
	call jumps_on
	REST
	END calls_on

	/* Through a pointer, so that rows alone tell it. */
	FUNCTION calls_any
	PUSHED
	movq pointer(%rip), %rax
	call *%rax
	.cfi_adjust_cfa_offset -8
	REST
	END calls_any

	/* The word that is jumped through is not the one on the top in front of the call. */
	FUNCTION jumps
	leaq labels(%rip), %rax
	movl %edi, %ecx
	andl $1, %ecx
	movq (%rax,%rcx,8), %rax
	pushq %rax
	.cfi_adjust_cfa_offset 8
	PUSHED
	call pops
	.cfi_adjust_cfa_offset -8
	popq %rcx
	.cfi_adjust_cfa_offset -8
	jmp *%rcx
first:	addq $1, %rax
	ret
second:	addq $2, %rax
	ret
	END jumps

	FUNCTION jumps_on
	testq %rdi, %rdi
	jns pops
	jmp pops
	END jumps_on

	FUNCTION pops
	movq 8(%rsp), %rax
	imulq $7, %rax, %rax
	xorl %ecx, %ecx
	cmpq $1000, %rax
	jl 1f
	incq %rcx
	cmpq $2000, %rax
	jl 1f
	incq %rcx
1:	addq %rcx, %rax
	ret $8
	END pops

	.section .data.rel.local,"aw"
	.p2align 3
pointer:
	.quad pops
	.section .data.rel.ro.local,"aw"
	.p2align 3
labels:	.quad first, second
	.section .note.GNU-stack,"",@progbits
