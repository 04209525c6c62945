/* Distances between functions in a table: numbers of the assembler's, of which no relocation tells. What they are added to stays if the sum is gone to, so that each sum leads to
   the old entry of another function, from where a jump leads on. */
#include "../assembly.h"
	.text
	function first
	leal 1(%rsi), %eax
	testl %eax, %eax
	js 1f
	ret
1:	negl %eax
	ret
	end first
	function second
	leal 5(%rsi,%rsi), %eax
	testl %eax, %eax
	js 1f
	ret
1:	notl %eax
	ret
	end second
	function third
	movl %esi, %eax
	xorl $0x55, %eax
	ret
	end third

	function by_jump
	leaq .Lfirst(%rip), %rdx
	leaq distances(%rip), %rax
	movslq (%rax,%rdi,4), %rax
	addq %rdx, %rax
	jmp *%rax
	end by_jump

/* The sum by an address that is worked out, from another function on. */
	function base
.Lbase:
	leal 3(%rsi), %eax
	imull %eax, %eax
	ret
	end base
	function by_call
	leaq .Lbase(%rip), %rdx
	leaq from_base(%rip), %rax
	movslq (%rax,%rdi,4), %rax
	leaq (%rdx,%rax), %rax
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call *%rax
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	incl %eax
	ret
	end by_call

/* Straight code that is entered so many steps from its start. */
	function unrolled
.Lunrolled:
	.rept 6
	leal 3(%rsi,%rsi), %esi
	xorl $0x5a, %esi
	.endr
	movl %esi, %eax
	ret
.Lstep = 7
	end unrolled
	function by_steps
	imull $.Lstep, %edi, %edi
	leaq .Lunrolled(%rip), %rdx
	movq %rdx, %rax
	addq %rdi, %rax
	movq %rax, %rcx
	jmp *%rcx
	end by_steps

	function lower
	lea 5(%rdi, %rdi, 2), %eax
	ret
	end lower
	function upper
	lea 9(%rdi), %eax
	ret
	end upper

	.set .Lfirst, first
	.section .rodata
	.p2align 2
distances:
	.long first - first, second - first, third - first
from_base:
	.long base - base, second - base, third - base
	.section .note.GNU-stack, "", @progbits
