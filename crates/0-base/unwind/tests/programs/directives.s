# What compilers never say, said by hand. Every rule kind and the escapes of an assembler.
	.text
	.globl	all_rules
	.type	all_rules, @function
all_rules:
	.cfi_startproc
	nop
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	.cfi_remember_state
	nop
	.cfi_val_offset 6, -24
	.cfi_register 12, 13
	.cfi_undefined 14
	.cfi_same_value 15
	nop
	.cfi_escape 0x10, 8, 3, 0x77, 0xd0, 0		# expression: r8 is at rsp + 80
	.cfi_escape 0x16, 9, 2, 0x77, 8			# val_expression: r9 is rsp + 8
	.cfi_offset 33, -64				# extended
	.cfi_offset 10, 16				# above the CFA
	nop
	.cfi_restore 3
	.cfi_restore 33
	nop
	.cfi_restore_state
	nop
	.cfi_escape 0x0f, 3, 0x76, 0x78, 0x06		# def_cfa_expression
	nop
	.cfi_def_cfa 6, 32
	.cfi_escape 0x2f, 11, 3				# GNU_negative_offset_extended
	nop
	.cfi_def_cfa 7, -8
	.skip	300, 0x90
	.cfi_def_cfa_offset 70000
	.skip	70000, 0x90
	.cfi_escape 0x2e, 24				# GNU_args_size
	.cfi_adjust_cfa_offset -69992
	ret
	.cfi_endproc
	.size	all_rules, .-all_rules

	.globl	simple
	.type	simple, @function
simple:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_def_cfa 3, 24
	.cfi_undefined 16
	nop
	.cfi_offset 16, 8
	.cfi_def_cfa_register 5
	ret
	.cfi_endproc
	.size	simple, .-simple
	.section	.note.GNU-stack,"",@progbits
