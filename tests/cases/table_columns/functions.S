#include "assembly.h"
	# Twelve functions in order, name0 to name11.
	.macro twelve name, more
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	function \name\number
	lea \more(%rdi, %rdi), %eax
	add $\number, %eax
	ret
	end \name\number
	.endr
	.endm

	.text
	twelve wide, 3
	twelve paired, 4
	twelve bounded, 5
	twelve subtracted, 6
	.section .note.GNU-stack, "", @progbits
