#include "assembly.h"
	.text
/* The table lies between the function's instructions; its bytes decode as something else. */
function table_inside
	andl $7, %edi
	leaq .Ltable(%rip), %rax
	movl (%rax,%rdi,4), %eax
	jmp 1f
	.p2align 2
.Ltable:
	.long 0x0f0b0f0b, 0xe8e9ebc3, 3, 0x05ff25ff, 0x9090c3c3, 0xcccccccc, 0x74757677, 8
1:	addl $1, %eax
	ret
end table_inside

/* A constant behind the last instruction, still inside of the symbol's size. */
function constant_behind
	movl %edi, %eax
	mulq .Lconstant(%rip)
	xorl %edx, %eax
	ret
	.p2align 3
.Lconstant:
	.quad 0x9e3779b97f4a7c15
end constant_behind

/* A table between two functions that belongs to none. */
	.p2align 4
	.globl loose_table
	.type loose_table, @object
loose_table:
	.long 0x11111111, 0x2222ffe8, 0xe9333333, 0x44444444
	.size loose_table, . - loose_table

function reads_neighbour
	andl $3, %edi
	leaq loose_table(%rip), %rdx
	movl (%rdx,%rdi,4), %eax
	addl 4(%rdx), %eax
	ret
end reads_neighbour

/* A jump through a table of offsets that stands in the function itself. */
function jump_inside
	leaq .Loffsets(%rip), %rdx
	movslq (%rdx,%rdi,4), %rcx
	addq %rdx, %rcx
	jmp *%rcx
	.p2align 2
.Loffsets:
	.long .Lzero - .Loffsets, .Lone - .Loffsets, .Ltwo - .Loffsets, .Lone - .Loffsets, .Lfour - .Loffsets
.Lzero:
	leal 1(%rsi), %eax
	ret
.Lone:
	leal (%rsi,%rsi,2), %eax
	ret
.Ltwo:
	movl %esi, %eax
	notl %eax
	ret
.Lfour:
	movl %esi, %eax
	shrl $5, %eax
	ret
end jump_inside
	.section .note.GNU-stack,"",@progbits
