/* Code between two names, as programs copy it: the first a function's, then two labels, then labels alone. */
	.text
	.globl blob, blob_end, piece_start, piece_end, beside

	.p2align 4
	.type blob, @function
blob:
	.cfi_startproc
	leal 7(%rdi,%rdi,2), %eax
	testl %eax, %eax
	js 1f
	xorl $0x55, %eax
	ret
1:	negl %eax
	ret
	.cfi_endproc
	.size blob, . - blob
blob_end:

	.p2align 4
	.type beside, @function
beside:
	.cfi_startproc
	leal 1(%rdi), %eax
	ret
	.cfi_endproc
	.size beside, . - beside

/* Two labels inside of one function. */
	.globl whole
	.p2align 4
	.type whole, @function
whole:
	.cfi_startproc
	movl %edi, %eax
	testl %edi, %edi
	jne 2f
	ret
2:
piece_start:
	imull $13, %edi, %eax
	cmpl $1000, %eax
	ja 3f
	ret
3:	shrl $2, %eax
	ret
piece_end:
	xorl %eax, %eax
	ret
	.cfi_endproc
	.size whole, . - whole

/* Nothing between the end of one and the start of the next. */
	.globl first, second, first_end
	.p2align 4
	.type first, @function
first:
	.cfi_startproc
	movl %edi, %eax
	cmpl $50, %edi
	jb 4f
	addl $3, %eax
	ret
4:	imull $3, %eax
	ret
	.cfi_endproc
	.size first, . - first
first_end:
	.type second, @function
second:
	.cfi_startproc
	leal 9(%rdi,%rdi), %eax
	ret
	.cfi_endproc
	.size second, . - second

/* The label where the first ends has a size of its own. */
	.globl third, sized
	.p2align 4
	.type third, @function
third:
	.cfi_startproc
	leal 2(%rdi,%rdi,4), %eax
	ret
	.cfi_endproc
	.size third, . - third
sized:
	leal 4(%rdi,%rdi,8), %eax
	ret
	.size sized, . - sized

	.section .data.rel.ro, "aw", @progbits
	.globl bounds
	.p2align 3
bounds:	.quad blob, blob_end, first, first_end
	.section .note.GNU-stack, "", @progbits
