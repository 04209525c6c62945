/* As OCaml's compiler does it: data names the place behind each call, and the runtime looks itself up there. */
	.text
	.globl looked_up
	.p2align 4
	.type looked_up, @function
looked_up:
	.cfi_startproc
	pushq %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	movl %edi, %ebx
	testl $1, %edi
	je 1f
	call collect
.Lfirst:
	addl %eax, %ebx
1:	call collect
.Lsecond:
	addl %ebx, %eax
	popq %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size looked_up, . - looked_up

	.data
	.globl table
	.p2align 3
table:
	.quad .Lfirst, 1000
	.quad .Lsecond, 20

	.section .note.GNU-stack, "", @progbits
