#include "assembly.h"
	.text
	# All fifteen other registers are read at the end, the flags at the start of each block.
	function sum_off_stack
	push %rbx
	.cfi_adjust_cfa_offset 8
	push %rbp
	.cfi_adjust_cfa_offset 8
	push %r12
	.cfi_adjust_cfa_offset 8
	push %r13
	.cfi_adjust_cfa_offset 8
	push %r14
	.cfi_adjust_cfa_offset 8
	push %r15
	.cfi_adjust_cfa_offset 8
	mov %rsp, the_stack(%rip)
	mov %rdi, %rsp
	.irp register, rax, rbx, rcx, rdx, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	xor %\register, %\register
	.endr
1:	pop %rdi
	add %rdi, %rax
	jo 3f
	lea 1(%rbx), %rbx
3:	jg 4f
	lea 10(%r10), %r10
4:	jle 5f
	lea 11(%r11), %r11
5:	ja 6f
	lea 12(%r12), %r12
6:	jp 7f
	lea 13(%r13), %r13
7:	js 8f
	lea 14(%r14), %r14
8:	add %rdi, %rcx
	.irp pair, "%rcx, %rdx", "%rdx, %rbp", "%rbp, %r8", "%r8, %r9", "%r9, %r10", "%r14, %r15"
	add \pair
	.endr
	dec %rsi
	jne 1b
	mov the_stack(%rip), %rsp
	.irp register, rbx, rcx, rdx, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	add %\register, %rax
	.endr
	pop %r15
	.cfi_adjust_cfa_offset -8
	pop %r14
	.cfi_adjust_cfa_offset -8
	pop %r13
	.cfi_adjust_cfa_offset -8
	pop %r12
	.cfi_adjust_cfa_offset -8
	pop %rbp
	.cfi_adjust_cfa_offset -8
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret
	end sum_off_stack
	.local the_stack
	.comm the_stack, 8, 8
	.section .note.GNU-stack, "", @progbits
