/* A pool of stubs, one each sixteen bytes, under one name: callbacks that tell who was called, as libraries for foreign functions make them. */
#include "../assembly.h"
	.text
	function stubs
number = 0
	.rept 8
	.p2align 4
	movl $number, %esi
	jmp .Lcommon
number = number + 1
	.endr
	.p2align 4
.Lcommon:
	leal (%rdi,%rsi,4), %eax
	testl %eax, %eax
	jns 1f
	negl %eax
1:	ret
	end stubs
	.section .note.GNU-stack, "", @progbits
