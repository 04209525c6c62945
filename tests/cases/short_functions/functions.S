#include "assembly.h"
	.text
	.p2align 4
function nothing, 0
	ret
end nothing
function nothing_more, 0
	ret
end nothing_more
function same, 0
	movl %edi, %eax
	ret
end same
function one, 0
	pushq $1
	.cfi_adjust_cfa_offset 8
	popq %rax
	.cfi_adjust_cfa_offset -8
	ret
end one
function minus, 0
	leal -1(%rdi), %eax
	ret
end minus
function larger, 0
	leal 300(%rdi), %eax
	jmp same_tail
end larger
function same_tail, 0
	ret
end same_tail
function carry, 0
	sbbl %eax, %eax
	xorl %eax, %eax
	ret
end carry

/* Nothing tells where this one ends, so it stays; a jump behind its mark would reach into the next, which jumps to what would be inside. */
	.globl marked
	.type marked, @function
marked:
	endbr64
	jmp same_tail
function halvings, 0
	xorl %eax, %eax
1:	shrl %edi
	jz 2f
	incl %eax
	jmp 1b
2:	ret
end halvings
	.section .note.GNU-stack,"",@progbits
