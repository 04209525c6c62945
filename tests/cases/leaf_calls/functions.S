#include "assembly.h"
	.text
	# Tiny functions that use the stack, each in another way.
function argument
	movl 8(%rsp), %eax
	ret
end argument
function red_zone
	movl %edi, -4(%rsp)
	movl -4(%rsp), %eax
	ret
end red_zone
function stack_top
	leaq (%rsp), %rax
	ret
end stack_top
function takes_argument
	movl 8(%rsp), %eax
	ret $8
end takes_argument
function system_call
	movl $39, %eax
	syscall
	ret
end system_call

	# Tiny functions that only compute: in flags, in memory, behind a mark, with a repeated return.
function carry
	cmpl %esi, %edi
	ret
end carry
function add_to_counter
	lock addl %edi, counter(%rip)
	ret
end add_to_counter
function place
	leaq counter(%rip), %rax
	ret
end place
function marked
	endbr64
	leal (%rdi,%rdi,2), %eax
	repz ret
end marked
function vector
	addps %xmm0, %xmm0
	ret
end vector
function with_next
	leal 1(%rdi), %eax
	ret
end with_next

	# The caller passes an argument on the stack, and takes it off.
function pass
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	call argument
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
end pass
function pass_and_forget
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	call takes_argument
	.cfi_adjust_cfa_offset -8
	ret
end pass_and_forget

	# It keeps something below the stack, out of a call's way.
function keeps_below
	movl %edi, -64(%rsp)
	call with_next
	addl -64(%rsp), %eax
	ret
end keeps_below

	# It uses the flags that the callee leaves, and those from before a callee that leaves them.
function by_carry
	call carry
	sbbl %eax, %eax
	ret
end by_carry
function over_vector
	cmpl %esi, %edi
	call vector
	setb %al
	movzbl %al, %eax
	ret
end over_vector

	# Calls with prefixes: for bounds, and as code for thread-local memory has them.
function prefixed
	.byte 0xf2
	call with_next
	movl %eax, %edi
	.byte 0x66, 0x48
	call with_next
	ret
end prefixed

	# The callee stands where the caller jumps in a loop, and twice in a row.
function in_loop
	movl $0, counter_of_loop(%rip)
	movl %edi, %esi
1:	call marked
	movl %eax, %edi
	call with_next
	movl %eax, %edi
	incl counter_of_loop(%rip)
	cmpl $5, counter_of_loop(%rip)
	jb 1b
	ret
end in_loop

	# The last thing that it does is a call of a tiny function; then a jump to one.
function ends_with_call
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call marked
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	movl %eax, %edi
	jmp with_next
end ends_with_call

	.bss
	.globl counter
	.p2align 2
counter:	.zero 4
counter_of_loop:	.zero 4
	.section .note.GNU-stack,"",@progbits
