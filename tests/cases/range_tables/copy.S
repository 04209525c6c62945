#include "assembly.h"
	.text
	function bytes_left
	mov %rdx, %rcx
	rep movsb
	xor %eax, %eax
	ret
	end bytes_left

	function bytes_fault
	mov %rcx, %rax
	ret
	end bytes_fault

	function words_left
	mov %rdx, %rcx
1:	mov -8(%rsi, %rcx), %rax
	mov %rax, -8(%rdi, %rcx)
	sub $8, %rcx
	jne 1b
	mov $-1, %rax
	ret
	end words_left

	function words_fault
	lea (%rcx, %rcx), %rax
	ret
	end words_fault
	.section .note.GNU-stack, "", @progbits
