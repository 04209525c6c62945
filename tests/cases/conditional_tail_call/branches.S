#include "assembly.h"
	.text
function target_a
	incl calls(%rip)
	leal 100(%rdi), %eax
	ret
end target_a

function if_zero
	testl %edi, %edi
	je target_a
	leal 1(%rdi), %eax
	ret
end if_zero

function if_below
	cmpl %esi, %edi
	jb target_b
	jmp target_a
end if_below

function target_b
	incl 4+calls(%rip)
	leal 7(%rdi,%rdi,2), %eax
	ret
end target_b

function if_odd
	testb $1, %dil
	movl %edi, %eax
	jne target_c
	shrl %eax
	ret
end if_odd

function counted
	movl %edi, %ecx
	movl %edi, %eax
	decl %ecx
	jz target_d
	jnz target_c
	ud2
end counted

function target_c
	incl 8+calls(%rip)
	xorl $0x5555, %eax
	ret
end target_c

function target_d
	incl 12+calls(%rip)
	addl $9, %eax
	ret
end target_d

	.section .note.GNU-stack,"",@progbits
