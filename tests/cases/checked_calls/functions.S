	.text
	.globl red, green, blue

/* As clang lays it out for -fsanitize=cfi: everybody's `red` is a row of this table. */
	.macro row name
	.type \name, @function
\name:
	.byte 0xe9
	.long body_\name - (. + 4)
	.byte 0xcc, 0xcc, 0xcc
	.size \name, . - \name
	.endm
	.p2align 3
	row red
	row green
	row blue

	.macro body name, number
	.p2align 4
	.type body_\name, @function
body_\name:
	.cfi_startproc
	imull $\number, %edi, %eax
	addl $7, %eax
	ret
	.cfi_endproc
	.size body_\name, . - body_\name
	.endm
	body red, 3
	body green, 5
	body blue, 11

	.section .note.GNU-stack, "", @progbits
