	.text
	.globl whole, empty, framed, unsized

/* Its cold fragment is reached through a pointer only. */
	.p2align 4
	.type whole, @function
whole:
	.cfi_startproc
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	movl $6, %eax
	cmpl $3, %edi
	jb .Lback
	jmp *pointer(%rip)
.Lback:
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size whole, . - whole

/* Its cold fragment is empty: what leads there never happens. */
	.p2align 4
	.type empty, @function
empty:
	.cfi_startproc
	leal 1(%rdi), %eax
	cmpl $7, %edi
	ja empty.cold
	ret
	.cfi_endproc
	.size empty, . - empty

/* An unwind entry instead of a size. */
	.p2align 4
	.type framed, @function
framed:
	.cfi_startproc
	movl $6, %eax
	testl %edi, %edi
	je 1f
	movl $5, %eax
1:	ret
	.cfi_endproc
	movl $11, %eax
	ret

/* Its cold fragment has no size, either. */
	.p2align 4
	.type unsized, @function
unsized:
	.cfi_startproc
	movl %edi, %eax
	cmpl $3, %edi
	ja unsized.cold
.Lunsized_back:
	addl $1, %eax
	ret
	.cfi_endproc
	.size unsized, . - unsized

/* Its size swallows two more, whose addresses leave the low bits free. */
	.p2align 4
	.globl swallowing
	.type swallowing, @function
swallowing:
	leal 2(%rdi), %eax
	ret
	.p2align 4
	.type swallowed, @function
swallowed:
	.cfi_startproc
	leal 3(%rdi, %rdi, 2), %edi
	.p2align 4
	.type swallowed_too, @function
swallowed_too:
	leal 5(%rdi), %eax
	ret
	.cfi_endproc
	.size swallowed, swallowed_too - swallowed
	.size swallowed_too, . - swallowed_too
	.size swallowing, . - swallowing

	.section .data.rel.local, "aw"
	.p2align 3
	.globl swallowed_functions
swallowed_functions:
	.quad swallowed, swallowed_too

/* The same, and only code names the one that is swallowed. */
	.text
	.p2align 4
	.globl holding, held
	.type holding, @function
holding:
	leal 7(%rdi), %eax
	ret
	.p2align 4
	.type held, @function
held:
	.cfi_startproc
	leal 8(%rdi), %eax
	ret
	.cfi_endproc
	.size held, . - held
	.p2align 4
	.size holding, . - holding + 16
	.skip 16, 0x90

/* Its size ends in the middle of an instruction of the next one, which jumps by a table. */
	.text
	.p2align 4
	.globl reaching, reached
	.type reaching, @function
reaching:
	leal 2(%rdi), %eax
	ret
	.p2align 4
	.size reaching, . - reaching + 5
	.type reached, @function
reached:
	movl %edi, %eax
	andl $1, %edi
	leaq places(%rip), %rcx
	jmp *(%rcx, %rdi, 8)
.Leven:
	addl $3, %eax
	ret
.Lodd:
	leal 1(%rax, %rax, 2), %eax
	ret
	.size reached, . - reached
	.type behind_reached, @function
	.p2align 4
	.globl behind_reached
behind_reached:
	leal 9(%rdi), %eax
	ret
	.size behind_reached, . - behind_reached

	.section .data.rel.local, "aw"
	.p2align 3
places:
	.quad .Leven, .Lodd

/* Its size swallows one that has an unwind entry and no type: a function still, and no label that bounds what stands before it. */
	.text
	.p2align 4
	.globl ahead, claiming, untyped
	.type ahead, @function
ahead:
	.cfi_startproc
	leal 4(%rdi), %eax
	ret
	.cfi_endproc
	.size ahead, . - ahead
	.p2align 4
	.type claiming, @function
claiming:
	leal 6(%rdi), %eax
	ret
	.p2align 4
	.size claiming, . - claiming + 32
untyped:
	.cfi_startproc
	leal 11(%rdi), %eax
	ret
	.cfi_endproc
	.size untyped, . - untyped
	.p2align 4
	.skip 16, 0x90

	.section .data.rel.local, "aw"
	.p2align 3
	.globl claimed_functions
claimed_functions:
	.quad ahead, untyped

	.section .text.unlikely, "ax", @progbits
	.type empty.cold, @function
empty.cold:
	.size empty.cold, . - empty.cold
	.type whole.cold, @function
whole.cold:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	movl $9, %eax
	jmp .Lback
	.cfi_endproc
	.size whole.cold, . - whole.cold

	.type unsized.cold, @function
unsized.cold:
	.cfi_startproc
	addl $1, %eax
	jmp .Lunsized_back
	.cfi_endproc

	.section .data.rel.local, "aw"
	.p2align 3
pointer:
	.quad whole.cold

#ifndef __PIE__
	.text
	.globl through_table, by_index
	.p2align 4
	.type through_table, @function
through_table:
	leal 0x20(%rdi), %eax
	jmp *table + 8
.Lzero:
	movl $0, %eax
.Lone:
	ret
	.size through_table, . - through_table

	.p2align 4
	.type by_index, @function
by_index:
	leal 0x20(%rdi), %eax
	movl %edi, %edi
	jmp *table - 8(, %rdi, 8)
	.size by_index, . - by_index

	.section .data.rel.local, "aw"
	.p2align 3
table:
	.quad .Lzero, .Lone
#endif

/* What is not loaded stands nowhere: symbols in it count from its start, as those of LLVM's maps of coverage do. As addresses these would lie in
   sections that give way to the program headers, and in code. */
	.section .not_loaded, "", @progbits
not_loaded:
	.zero 0x1400
	.irp place, 0x2a8, 0x2c8, 0x2e8, 0x308, 0x318, 0x328, 0x338, 0x348, 0x358, 0x368, 0x378, 0x1120, 0x1130, 0x1140
	.set not_loaded_\place, not_loaded + \place
	.type not_loaded_\place, @object
	.size not_loaded_\place, 8
	.endr

	.section .note.GNU-stack,"",@progbits
