	.text
	.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

	# Four elements in front of the table, each named from its end and from words inside it, by a base register and by an index.
function sum_by_base
	movq $-32, %rdx
	movl table(%rdx), %eax
	addl table+8(%rdx), %eax
	addl table+16(%rdx), %eax
	addl table+24(%rdx), %eax
	ret
end sum_by_base
function sum_by_index
	movq $-4, %rdx
	movl table(,%rdx,8), %eax
	addl table+8(,%rdx,8), %eax
	addl table+16(,%rdx,8), %eax
	addl table+24(,%rdx,8), %eax
	ret
end sum_by_index

function choose
	andl $7, %edi
	leaq table(%rip), %rcx
	movslq (%rcx,%rdi,4), %rax
	addq %rcx, %rax
	jmp *%rax
1:	movl $100, %eax
	ret
2:	movl $200, %eax
	ret
3:	movl $300, %eax
	ret
	.section .rodata
	.p2align 3
	.quad 1, 2, 3, 4
table:	.long 1b - table, 2b - table, 3b - table, 2b - table, 1b - table, 3b - table, 3b - table, 1b - table
	.text
end choose
	.section .note.GNU-stack,"",@progbits
