#include "assembly.h"
	.text
	# Calls of a library's function with prefixes, as a tail, under a condition, and by the word itself.
function prefixed
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	.byte 0xf2
	call strlen@PLT
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
end prefixed
function wide
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	.byte 0x66, 0x48
	call strlen@PLT
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
end wide
function tail
	jmp strlen@PLT
end tail
function conditional_tail
	testq %rsi, %rsi
	jne strlen@PLT
	movl $1, %eax
	ret
end conditional_tail
function by_word
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call *strlen@GOTPCREL(%rip)
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
end by_word

	# Behind the call the flow is entered from elsewhere, too.
function in_loop
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	pushq %r12
	.cfi_adjust_cfa_offset 8
	.cfi_offset %r12, -24
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	xorl %ebx, %ebx
	xorl %eax, %eax
	movq %rdi, %r12
	jmp 2f
1:	movq %r12, %rdi
	call strlen@PLT
2:	addq %rax, %rbx
	incq %r12
	cmpb $0, -1(%r12)
	jne 1b
	movq %rbx, %rax
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %r12
	.cfi_restore %r12
	.cfi_adjust_cfa_offset -8
	popq %rbx
	.cfi_restore %rbx
	.cfi_adjust_cfa_offset -8
	ret
end in_loop
	.section .note.GNU-stack,"",@progbits
