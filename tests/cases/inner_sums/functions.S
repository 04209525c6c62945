/* Functions that data and code name with a constant added which does not lead out of them. */
#include "assembly.h"

/* Instructions start 1 and 16 bytes behind the entry. */
	.macro body number
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	movl %edi, %ebx
	testl $1, %edi
	je 1f
	imull $\number, %ebx, %ebx
	movl %ebx, %ebx
	nop
	leal 3(%rbx), %eax
	jmp 2f
1:	leal \number(%rbx, %rbx), %eax
2:	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.endm

	.text
function tagged
	body 11
end tagged
	.text
function distant
	body 13
end distant
	.text
function named_in_code
	body 17
end named_in_code
	.text
function beside
	body 19
end beside

/* The same of a name that is no function's. */
	.globl label
	.text
function around
	testl $6, %edi
	jne label
	leal 1(%rdi), %eax
	ret
label:
	body 23
end around

	.text
function behind
	leaq named_in_code + 16(%rip), %rax
	ret
end behind

	.section .data.rel.ro, "aw", @progbits
	.globl words
	.p2align 3
words:	.quad tagged + 1, distant + 16, label + 16
	.section .note.GNU-stack, "", @progbits
