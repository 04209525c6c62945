#include "assembly.h"
	.text
function sum_down
	movl %edi, %ecx
	xorl %eax, %eax
1:	addl %ecx, %eax
	loop 1b
	ret
end sum_down

function zero_or
	movl %edi, %ecx
	jrcxz 1f
	leal 5(%rcx), %eax
	ret
1:	movl $99, %eax
	ret
end zero_or

/* jecxz looks at 32 bits only. */
function low_zero
	movq %rdi, %rcx
	jecxz 1f
	movl $1, %eax
	ret
1:	shrq $32, %rdi
	leal 2(%rdi), %eax
	ret
end low_zero

/* How many bytes the two strings share at their start. */
function length_equal
	movl %edx, %ecx
	movl %edx, %eax
1:	movb (%rdi), %r8b
	incq %rdi
	cmpb (%rsi), %r8b
	leaq 1(%rsi), %rsi
	loope 1b
	je 2f
	incl %ecx
2:	subl %ecx, %eax
	ret
end length_equal

/* The place of the character, or the length. */
function find
	movl %edx, %ecx
	movl %edx, %eax
	jrcxz 3f
	decq %rdi
1:	incq %rdi
	cmpb %sil, (%rdi)
	loopne 1b
	jne 3f
	incl %ecx
3:	subl %ecx, %eax
	ret
end find
	.section .note.GNU-stack,"",@progbits
