/* What gcc 12 writes where a default can't happen (CPython's ast2obj_expr): the fragment for it is empty, and the table's entries for
   it, the first one among them, lead to where another function's fragment begins. */
	.text
	.p2align 4
	.globl chosen
	.type chosen, @function
chosen:
	.cfi_startproc
	endbr64
	cmpl $7, %edi
	ja chosen.cold
	leaq .Ltable(%rip), %rdx
	movl %edi, %edi
	movslq (%rdx,%rdi,4), %rax
	addq %rdx, %rax
	notrack jmp *%rax
.Lone:
	leal 11(%rsi), %eax
	ret
.Ltwo:
	imull $13, %esi, %eax
	ret
.Lthree:
	movl %esi, %eax
	xorl $0x77, %eax
	ret
.Lfour:
	movl %esi, %eax
	shrl $3, %eax
	ret
	.cfi_endproc
	.size chosen, . - chosen
	.section .text.unlikely, "ax", @progbits
	.type chosen.cold, @function
chosen.cold:
	.size chosen.cold, . - chosen.cold
	.section .rodata
	.p2align 2
.Ltable:
	.long chosen.cold - .Ltable
	.long .Lone - .Ltable
	.long .Ltwo - .Ltable
	.long chosen.cold - .Ltable
	.long .Lthree - .Ltable
	.long .Lfour - .Ltable
	.long .Lone - .Ltable
	.long .Ltwo - .Ltable

	.text
	.p2align 4
	.globl neighbour
	.type neighbour, @function
neighbour:
	.cfi_startproc
	endbr64
	testl $15, %edi
	je neighbour.cold
	leal 5(%rdi), %eax
	ret
	.cfi_endproc
	.size neighbour, . - neighbour
	.section .text.unlikely
	.type neighbour.cold, @function
neighbour.cold:
	.cfi_startproc
	movl %edi, %eax
	notl %eax
	ret
	.cfi_endproc
	.size neighbour.cold, . - neighbour.cold
/* A function that stays, since nothing shows where its jump leads. What can't happen leads to where it ends, and there the next
   function begins: that one stays, too. */
	.text
	.p2align 4
	.globl staying
	.type staying, @function
staying:
	.cfi_startproc
	endbr64
	leaq .Lown(%rip), %rdx
	movl %edi, %edi
	movslq (%rdx,%rdi,4), %rax
	addq %rdx, %rax
	xorq $0, %rax
	notrack jmp *%rax
.Lodd:
	leal 3(%rsi), %eax
	ret
.Leven:
	leal (%rsi,%rsi,4), %eax
	ret
	.cfi_endproc
	.size staying, . - staying
.Lend:
	.globl behind
	.type behind, @function
behind:
	.cfi_startproc
	endbr64
	leal 9(%rdi,%rdi,2), %eax
	ret
	.cfi_endproc
	.size behind, . - behind
	.section .rodata
	.p2align 2
.Lown:
	.long .Lend - .Lown
	.long .Lodd - .Lown
	.long .Leven - .Lown
	.long .Lodd - .Lown
	.section .note.GNU-stack, "", @progbits
