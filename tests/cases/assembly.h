/* What every function in assembly has around it. `function name` starts one at a multiple of sixteen bytes, `function name, 0` right
   behind the one before it. */
	.macro function name, alignment = 4
	.p2align \alignment
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm
