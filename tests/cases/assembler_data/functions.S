	.text
	.globl before, behind, named, labelled, tabled

	.p2align 4
	.type before, @function
before:
	.cfi_startproc
	leal 7(%rdi,%rdi,2), %eax
	ret
	.cfi_endproc
	.size before, . - before

/* Text that no symbol describes. Read as instructions, it jumps into the middle of what follows: `jo` to two bytes into
   the first instruction of `behind`. */
	.byte 0x70, behind + 2 - (. + 1)
	.ascii "by the authors, for all processors"
	.byte 0

	.p2align 4
	.type behind, @function
behind:
	.cfi_startproc
	imull $0x01020304, %edi, %eax
	xorl $0x55, %eax
	ret
	.cfi_endproc
	.size behind, . - behind

/* Data that reads as a call of the function that follows, without a relocation. */
	.byte 0xe8
	.long .Lnamed - (. + 4)
	.byte 0x06

	.p2align 4
	.type named, @function
named:
.Lnamed:
	.cfi_startproc
	movl %edi, %eax
	notl %eax
	ret
	.cfi_endproc
	.size named, . - named

/* A label without a size inside of a function, used from outside: it moves with it and still has no size. */
	.p2align 4
	.type labelled, @function
labelled:
	.cfi_startproc
	testl $1, %edi
	je inner_label
	addl $100, %edi
inner_label:
	movl %edi, %eax
	roll $5, %eax
	ret
	.cfi_endproc
	.size labelled, . - labelled

	.p2align 4
	.type tabled, @function
tabled:
	.cfi_startproc
	andl $7, %edi
	testl $1, %edi
	jne inner_label
	leaq table(%rip), %rcx
	movl (%rcx,%rdi,4), %eax
	ret
	.cfi_endproc
	.size tabled, . - tabled

/* A table among the code, with a name and no size; some of it is no instruction. */
	.p2align 4
table:
	.long 0x06060606, 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4

	.section .note.GNU-stack, "", @progbits
