/* Behind functions that are too short for a jump to their new place stands what looks like padding and is none. */
#include "../assembly.h"
	.text

/* Nops that are jumped to: code that has no name. */
	function leads_behind
	leal (%rsi,%rdi), %eax
	testb $1, %al
	je .Lbehind
	ret
	end leads_behind
	function nothing
	ret
	end nothing
.Lbehind:
	nop
	nop
	nopl 0(%rax,%rax,1)
	leal 7(%rax,%rax,2), %eax
	ret

/* Nops that are read: data that has no name. */
	function nothing_else
	ret
	end nothing_else
.Ldata:
	.fill 31, 1, 0x90
	function reads_behind
	leaq .Ldata(%rip), %rdx
	movzbl (%rdx,%rdi), %eax
	ret
	end reads_behind

/* The same, found by a word of data. */
	function nothing_more
	ret
	end nothing_more
.Lfound:
	.fill 31, 1, 0x90
	function reads_found
	leaq where(%rip), %rdx
	movslq (%rdx), %rax
	addq %rdx, %rax
	movzbl (%rax,%rdi), %eax
	ret
	end reads_found

	.section .rodata
	.p2align 2
where:
	.long .Lfound - .
	.section .note.GNU-stack, "", @progbits
