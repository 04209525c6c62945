#include "assembly.h"
	.text
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	function wide\number
	lea 3(%rdi, %rdi), %eax
	add $\number, %eax
	ret
	end wide\number
	.endr
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	function paired\number
	lea 4(%rdi, %rdi), %eax
	add $\number, %eax
	ret
	end paired\number
	.endr
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	function bounded\number
	lea 5(%rdi, %rdi), %eax
	add $\number, %eax
	ret
	end bounded\number
	.endr
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	function subtracted\number
	lea 6(%rdi, %rdi), %eax
	add $\number, %eax
	ret
	end subtracted\number
	.endr
	.section .note.GNU-stack, "", @progbits
