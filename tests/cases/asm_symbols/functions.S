	.text
	.globl sizeless, sizeless_next, typeless, entry_far, entry_near, outer, inner, first_user, second_user

/* A function with a type and without a size. */
	.p2align 4
	.type sizeless, @function
sizeless:
	testl %edi, %edi
	jz 1f
	leal 3(%rdi,%rdi), %eax
	ret
1:	movl $77, %eax
	ret

	.type sizeless_next, @function
sizeless_next:
	movl %edi, %eax
	movl $5, %ecx
1:	roll $3, %eax
	decl %ecx
	jnz 1b
	ret

/* A size and no type. */
	.p2align 4
typeless:
	movl %edi, %eax
	bswapl %eax
	testl $4, %edi
	jne 1f
	notl %eax
1:	ret
	.size typeless, . - typeless

/* One function with two entries: the second is in the middle and has a symbol with its own size. */
	.p2align 4
	.type entry_far, @function
entry_far:
	.cfi_startproc
	imull $9, %edi, %edi
	cmpl $1000, %edi
	ja entry_near
	addl $1, %edi
	.type entry_near, @function
entry_near:
	movl %edi, %eax
	xorl $0x2222, %eax
	testl $8, %edi
	je 1f
	addl $5, %eax
1:	ret
	.cfi_endproc
	.size entry_near, . - entry_near
	.size entry_far, . - entry_far

/* A symbol inside of another: it has an end before the outer one's. */
	.p2align 4
	.type outer, @function
outer:
	.cfi_startproc
	movl %edi, %eax
	shrl $3, %eax
	jmp 1f
	.type inner, @function
inner:
	leal 40(%rdi), %eax
	ret
	.size inner, . - inner
1:	addl $2, %eax
	ret
	.cfi_endproc
	.size outer, . - outer

/* Two functions that jump to one tail inside of the first. */
	.p2align 4
	.type first_user, @function
first_user:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	movl %edi, %ebx
	call from_c
	addl $1, %eax
.Lshared_tail:
	xorl %ebx, %eax
	popq %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size first_user, . - first_user

	.p2align 4
	.type second_user, @function
second_user:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	leal (%rdi,%rdi,4), %ebx
	call from_c
	subl $3, %eax
	jmp .Lshared_tail
	.cfi_endproc
	.size second_user, . - second_user

	.section .note.GNU-stack,"",@progbits
