#include "assembly.h"
	.text
	# The same code; only one of them says where the caller's rbx is.
	.macro keeper name said
	.p2align 4
function \name, 0
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.if \said
	.cfi_offset %rbx, -16
	.endif
	movl $42, %ebx
	call look
	popq %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
end \name
	.endm
	keeper told 1
	keeper untold 0
	keeper told_again 1

	# The same but for where a branch leads.
	.macro stairs name target
	.p2align 4
function \name, 0
	testl %edi, %edi
	je \target
	incl %edi
1:	incl %edi
2:	incl %edi
	movl %edi, %eax
	ret
end \name
	.endm
	stairs first_stairs 1f
	stairs second_stairs 2f
	stairs third_stairs 1f

	# The same with another alignment; the second one's address is taken.
	.macro steps name alignment
	.p2align \alignment
function \name, 0
	leal 3(%rdi,%rdi,4), %eax
	xorl $9, %eax
	ret
end \name
	.endm
	steps loose_steps 0
	steps aligned_steps 6
	.section .note.GNU-stack,"",@progbits
