#include "assembly.h"
	.text
	.p2align 4
	.globl module_start, module_end
module_start:
	.type digest, @function
	.globl digest
digest:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	movl %edi, %ebx
	call outside
	call step
	addl %ebx, %eax
	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size digest, . - digest
	.type step, @function
step:
	.cfi_startproc
	leal 7(%rax, %rax, 2), %eax
	jmp behind
	.cfi_endproc
	.size step, . - step
module_end:

	.p2align 6
	.type outside, @function
outside:
	.cfi_startproc
	imull $40503, %edi, %eax
	ret
	.cfi_endproc
	.size outside, . - outside
	.p2align 4
	.type behind, @function
behind:
	.cfi_startproc
	xorl $0x5a5a, %eax
	ret
	.cfi_endproc
	.size behind, . - behind

/* Bounded by labels that no relocation tells of, and three functions long. */
	.p2align 4
second_start:
	.type first_of_three, @function
	.globl first_of_three
first_of_three:
	.cfi_startproc
	movl %edi, %eax
	call inner_of_three
	call *%rdx
	ret
	.cfi_endproc
	.size first_of_three, . - first_of_three
	.type inner_of_three, @function
inner_of_three:
	.cfi_startproc
	leaq taken(%rip), %rdx
	ret
	.cfi_endproc
	.size inner_of_three, . - inner_of_three
	.type third_of_three, @function
	.globl third_of_three
third_of_three:
	.cfi_startproc
	jmp outside
	.cfi_endproc
	.size third_of_three, . - third_of_three
second_end:

/* One function, with a label at each end. */
	.p2align 4
	.globl single_start, single_end
single_start:
	.type single, @function
	.globl single
single:
	.cfi_startproc
	jmp outside
	.cfi_endproc
	.size single, . - single
single_end:
	.p2align 6
	.type taken, @function
taken:
	.cfi_startproc
	addl $0x33, %eax
	ret
	.cfi_endproc
	.size taken, . - taken
	.p2align 4
	.globl second_module
	.type second_module, @function
second_module:
	.cfi_startproc
	leaq second_start(%rip), %rax
	leaq second_end(%rip), %rdx
	subq %rax, %rdx
	ret
	.cfi_endproc
	.size second_module, . - second_module
	.section .note.GNU-stack,"",@progbits
