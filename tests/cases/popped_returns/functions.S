/* Functions that return by a jump to what they take off the stack, as -mlvi-hardening writes all of them: where several ways meet in front of it, that is
   a block that begins with the return address. */
	.text
	.globl clamped, scaled
	.p2align 4
	.type clamped, @function
clamped:
	.cfi_startproc
	movl %edi, %eax
	cmpl $9, %eax
	jb 1f
	movl $9, %eax
1:	popq %rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rcx
	lfence
	jmp *%rcx
	.cfi_endproc
	.size clamped, . - clamped

	.p2align 4
	.type scaled, @function
scaled:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
	movl %edi, %ebx
	call clamped
	imull %ebx, %eax
	testl %esi, %esi
	je 1f
	addl %esi, %eax
1:	popq %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	popq %rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rcx
	lfence
	jmp *%rcx
	.cfi_endproc
	.size scaled, . - scaled
	.section .note.GNU-stack,"",@progbits
