#include "assembly.h"
	.text
/* call to the next instruction, pop, and a distance that the assembler computed. */
function here_and_data
	call .Lhere
.Lhere:
	popq %rax
	andl $3, %edi
	addl .Ldata - .Lhere(%rax,%rdi,4), %edi
	leal 1(%rdi), %eax
	ret
	.p2align 2
.Ldata:
	.long 10, 200, 3000, 40000
end here_and_data

function get_pc
	movq (%rsp), %rcx
	ret
end get_pc

function through_thunk
	call get_pc
.Lback:
	leaq .Lnumbers - .Lback(%rcx), %rcx
	andl $1, %edi
	movl (%rcx,%rdi,4), %eax
	addl %edi, %eax
	ret
	.p2align 2
.Lnumbers:
	.long 0x51525354, 0x90909090
end through_thunk
	.section .note.GNU-stack,"",@progbits
