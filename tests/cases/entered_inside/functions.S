#include "assembly.h"
	.text
function body
	addl $5, %edi
.Lmiddle:
	testl $2, %edi
	je .Lother
	leal (%rdi,%rdi,8), %eax
	ret
.Lother:
	movl %edi, %eax
	notl %eax
	ret
end body

/* Four bytes of endbr64 are skipped by those who call function + 4. */
function skippable
	endbr64
	movl %edi, %eax
	testl %eax, %eax
	js 1f
	addl $12, %eax
1:	ret
end skippable

/* Pushes the address to come back to and leaves by a jump. */
function resumed
	leaq .Lcontinue(%rip), %rax
	pushq %rax
	.cfi_adjust_cfa_offset 8
	jmp body
	.cfi_adjust_cfa_offset -8
.Lcontinue:
	xorl $0x700, %eax
	jns 1f
	shrl $2, %eax
1:	ret
end resumed

	.section .data.rel.ro,"aw",@progbits
	.p2align 3
	.globl inside
	.type inside, @object
inside:
	.quad .Lmiddle
	.quad skippable + 4
	.quad .Lother
	.size inside, . - inside
	.section .note.GNU-stack,"",@progbits
