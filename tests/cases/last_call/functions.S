/* Functions whose last instruction is a call that comes back: control goes on in what follows, with or without padding
   in between, as hand-written code with several entries has it. */
	.text
	.macro begin name
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm
	.macro finish name
	.cfi_endproc
	.size \name, . - \name
	.endm

	.p2align 4
	begin thrice
	leal (%rdi,%rdi,2), %eax
	ret
	finish thrice

	begin thrice_plus_one
	call thrice
	finish thrice_plus_one
	begin plus_one
	addl $1, %eax
	ret
	finish plus_one

	.p2align 4
	begin thrice_through
	addl $0, %edi
	orl $0, %edi
	xorl $0, %edi
	call *%rsi
	finish thrice_through
	.p2align 5
	begin minus_seven
	subl $7, %eax
	ret
	finish minus_seven

/* Too short for the jump that would stand in its old place. */
	begin short_through
	call *%rsi
	finish short_through
	.p2align 4
	begin minus_nine
	subl $9, %eax
	ret
	finish minus_nine

/* What follows stands in no function. */
	begin thrice_and_on
	addl $0, %edi
	orl $0, %edi
	call thrice
	finish thrice_and_on
	xorl $0x55, %eax
	ret

/* GNU ld puts it right in front of `_start`, whose unwind entry nobody finds in a static program. */
	.section .text.sorted.9, "ax", @progbits
	.p2align 4
	begin stops_if_not_zero
	testl %edi, %edi
	jne 1f
	leal 1(%rdi), %eax
	ret
1:	leaq (%rsi), %rsi
	call abort
	finish stops_if_not_zero

	.section .note.GNU-stack, "", @progbits
