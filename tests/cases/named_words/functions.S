#include "assembly.h"
	.text
	# What the words below would lead to if they counted from the table before.
function before
	leal 7(%rdi,%rdi,8), %eax
	xorl $0x1234, %eax
	imull $77, %eax, %eax
	roll $5, %eax
	addl %edi, %eax
	ret
end before
function first
	leal 30(%rdi), %eax
	ret
end first
function second
	imull $4, %edi, %eax
	ret
end second

function aside
	leal -9(%rdi), %eax
	ret
end aside

	# It counts from the word that it loads.
function by_table
	leaq table(%rip), %rax
	movq %rax, %rcx
	addq (%rax), %rcx
	jmp *%rcx
end by_table

	.section .rodata
	.p2align 3
table:	.quad aside - table
	.quad 0
	# The words are named as data, by their absolute address, and count from another place than they stand at.
	.globl base, near
base:	.zero 8
near:	.long first - base
	.long second - base
	.long first - base
	.section .note.GNU-stack,"",@progbits
