/* Places of code as distances from the global offset table, and from where the stubs are. */
#include "../assembly.h"
	.text
	function steps
	leal 3(%rdi,%rdi), %edi
.Lsecond:
	xorl $0x5a, %edi
.Lthird:
	leal 1(%rdi), %eax
	testl %eax, %eax
	jns 1f
	negl %eax
1:	ret
	end steps

	function whole
.Lwhole:
	imull $7, %edi, %eax
	ret
	end whole

	function by_offset
	leaq words(%rip), %rax
	movslq %esi, %rsi
	movq (%rax,%rsi,8), %rax
	leaq _GLOBAL_OFFSET_TABLE_(%rip), %rdx
	addq %rdx, %rax
	jmp *%rax
	end by_offset

	.section .rodata
	.p2align 3
words:
	.quad .Lsecond@GOTOFF, .Lthird@GOTOFF, .Lwhole@PLTOFF
	.section .note.GNU-stack, "", @progbits
