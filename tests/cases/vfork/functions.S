	.text
	.globl own_vfork, asks

/* As musl has it. */
	.p2align 4
	.type own_vfork, @function
own_vfork:
	endbr64
	popq %rdx
	movl $58, %eax
	syscall
	pushq %rdx
	ret
	.size own_vfork, . - own_vfork

/* Hands out where its call returns to. */
	.p2align 4
	.type where, @function
where:
	popq %rcx
	jmp *%rcx
	.size where, . - where

	.p2align 4
	.type asks, @function
asks:
	call where
.Lbehind:
	movl %edi, %edi
	movl .Ldata - .Lbehind(%rcx,%rdi,4), %eax
	ret
	.size asks, . - asks
	.p2align 2
.Ldata:
	.long 0x11, 0x13

	.section .note.GNU-stack,"",@progbits
