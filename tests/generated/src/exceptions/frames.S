/* Frames that exceptions pass through, without a personality. */
	.text
	.globl through_frame
	.type through_frame, @function
through_frame:
	.cfi_startproc
#if defined(__CET__) && (__CET__ & 1)
	endbr64
#endif
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq $48, %rsp
	movq %rdi, %rax
	movl %esi, %edi
	testl $1, %edi
	jne 1f
	call *%rax
	leave
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	ret
1:	.cfi_restore_state
	incl %edi
	call *%rax
	addl $3, %eax
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size through_frame, . - through_frame

/* Registers that its callers count on are saved, and used. */
	.p2align 4
	.globl through_saved
	.type through_saved, @function
through_saved:
	.cfi_startproc
#if defined(__CET__) && (__CET__ & 1)
	endbr64
#endif
	pushq %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	pushq %r12
	.cfi_def_cfa_offset 24
	.cfi_offset %r12, -24
	subq $8, %rsp
	.cfi_def_cfa_offset 32
	movq %rdi, %rbx
	movl %esi, %r12d
	movl %r12d, %edi
	call *%rbx
	testb $2, %r12b
	je 2f
	leal 1(%rax), %edi
	movl %eax, %r12d
	call *%rbx
	addl %r12d, %eax
2:	xorl %ebx, %ebx
	addq $8, %rsp
	.cfi_def_cfa_offset 24
	popq %r12
	.cfi_def_cfa_offset 16
	popq %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size through_saved, . - through_saved
	.section .note.GNU-stack,"",@progbits
