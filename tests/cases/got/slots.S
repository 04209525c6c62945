#include "assembly.h"
	.text
function call_through_slot
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call *far_away@GOTPCREL(%rip)
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	addl $3, %eax
	ret
end call_through_slot

function jump_through_slot
	addl $1, %edi
	jmp *far_away@GOTPCREL(%rip)
end jump_through_slot

function load_slot
	movq far_away@GOTPCREL(%rip), %rax
	testl $1, %edi
	je 1f
	jmp *%rax
1:	movq far_variable@GOTPCREL(%rip), %rdx
	movl (%rdx), %eax
	ret
end load_slot

/* No linker relaxes this one. */
function push_slot
	pushq far_away@GOTPCREL(%rip)
	.cfi_adjust_cfa_offset 8
	popq %rax
	.cfi_adjust_cfa_offset -8
	jmp *%rax
end push_slot

/* A second entry, which nothing but a slot leads to. */
function two_entries
	addl $4, %edi
	.globl second_entry
	.type second_entry, @function
second_entry:
	leal 3(%rdi,%rdi,4), %eax
	ret
	.size second_entry, . - second_entry
end two_entries

function push_second_entry
	pushq second_entry@GOTPCREL(%rip)
	.cfi_adjust_cfa_offset 8
	popq %rax
	.cfi_adjust_cfa_offset -8
	jmp *%rax
end push_second_entry

function compare_slot
	xorl %eax, %eax
	cmpq far_away@GOTPCREL(%rip), %rdi
	sete %al
	ret
end compare_slot

function test_slot
	movq $-1, %rax
	testq %rax, far_away@GOTPCREL(%rip)
	setne %al
	movzbl %al, %eax
	ret
end test_slot

function add_slot
	movl %edi, %eax
	addq far_variable@GOTPCREL(%rip), %rax
	subq far_variable@GOTPCREL(%rip), %rax
	ret
end add_slot
	.section .note.GNU-stack,"",@progbits
