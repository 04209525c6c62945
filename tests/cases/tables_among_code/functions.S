/* Tables of distances that stand among the code, as hand-written interpreters have them: the assembler knows the numbers, and no relocation tells of
   them. All code is reached by other ways, too. */
#include "../assembly.h"
	.text
/* Bytes, in front of the function; its loop begins where the jump at an old entry would still lie. */
.Lbytes:
	.byte .Lskip - .Lbytes, .Lone - .Lbytes, .Ltwice - .Lbytes, .Lend - .Lbytes
	function by_bytes
	xorl %eax, %eax
.Lskip:
	movzbl (%rdi), %ecx
	incq %rdi
	cmpl $1, %ecx
	je .Lone
	cmpl $2, %ecx
	je .Ltwice
	leaq .Lbytes(%rip), %rdx
	movzbl (%rdx,%rcx), %ecx
	addq %rdx, %rcx
	jmp *%rcx
.Ltwice:
	addl %eax, %eax
	jmp .Lskip
.Lone:
	incl %eax
	cmpl $1000000, %eax
	jb .Lskip
.Lend:
	ret
	end by_bytes

/* Words behind the function, the table's address kept in a register all along, and names for all of it. */
	function by_words
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	leaq words(%rip), %rbx
	xorl %eax, %eax
	jmp next
word_one:
	addl $3, %eax
	jmp next
word_twice:
	leal 1(%rax,%rax), %eax
next:
	movzbl (%rdi), %ecx
	incq %rdi
	cmpl $3, %ecx
	je word_end
	movslq (%rbx,%rcx,4), %rcx
	addq %rbx, %rcx
	jmp *%rcx
word_end:
	popq %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	end by_words
	.p2align 2
words:
	.long next - words, word_one - words, word_twice - words, word_end - words

/* What a function with a table of its own in read-only data does is known. */
	function by_relocations
	cmpl $2, %edi
	ja 9f
	leaq .Lfar(%rip), %rdx
	movslq (%rdx,%rdi,4), %rax
	addq %rdx, %rax
	jmp *%rax
1:	leal 7(%rsi), %eax
	ret
2:	leal 9(%rsi,%rsi), %eax
	ret
3:	imull %esi, %esi
9:	movl %esi, %eax
	ret
	end by_relocations
	.section .rodata
	.p2align 2
.Lfar:
	.long 1b - .Lfar, 2b - .Lfar, 3b - .Lfar
	.section .note.GNU-stack, "", @progbits
