#include "assembly.h"
	.text
	function chosen
	push %rbx
	.cfi_adjust_cfa_offset 8
	cmp $4, %edi
	jae 5f
	xor %ebx, %ebx
	mov %edi, %ecx
	lea .Ltable(%rip), %rdx
	movslq (%rdx, %rcx, 4), %rax
	add %rdx, %rax
	test $1, %sil
	jmp *%rax
.Lfirst:
	jne 3f
	mov $1, %ebx
	jmp 4f
.Lsecond:
	jne 3f
	mov $20, %ebx
	jmp 4f
.Lthird:
	je 4f
	mov $300, %ebx
3:	mov $77, %ebx
4:	lea (%rsi, %rbx), %eax
	pop %rbx
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state
5:	pop %rbx
	.cfi_adjust_cfa_offset -8
	jmp *otherwise(%rip)
	end chosen

	/* The same, but what it leads on to has come in two ways. */
	function chosen_of_two
	push %rbx
	.cfi_adjust_cfa_offset 8
	mov %edi, %ecx
	cmp $3, %edi
	jae 6f
	lea .Lother(%rip), %rdx
	movslq (%rdx, %rcx, 4), %rax
	add %rdx, %rax
	test $2, %sil
	jmp *%rax
.Lfourth:
	jne 4f
	mov $5, %eax
	jmp 5f
.Lfifth:
	je 4f
	mov $60, %eax
	jmp 5f
4:	mov $700, %eax
5:	add %esi, %eax
	pop %rbx
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state
6:	mov otherwise(%rip), %rax
	cmp $5, %edi
	jne 7f
	mov more(%rip), %rax
7:	pop %rbx
	.cfi_adjust_cfa_offset -8
	jmp *%rax
	end chosen_of_two

	.section .rodata
	.p2align 2
.Ltable:
	.long .Lfirst - .Ltable, .Lsecond - .Ltable, .Lthird - .Ltable, .Lfirst - .Ltable
.Lother:
	.long .Lfourth - .Lother, .Lfifth - .Lother, .Lfourth - .Lother
	.section .note.GNU-stack, "", @progbits
