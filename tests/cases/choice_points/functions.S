/* Code of labels without sizes, as GNU Prolog's compiler writes it: one has the addresses of others, of which one is chosen and jumped
   to. What lies between them may be read for all that anybody knows, so no byte of it changes, and what it calls moves all the same. */
#ifdef __PIC__
#define ADDRESS(label, register) leaq label(%rip), register
#else
#define ADDRESS(label, register) movq $label, register
#endif
	.text
	.globl one_of, first_choice, second_choice, third_choice, last_choice
	.type one_of, @function
	.p2align 4
one_of:
	pushq %rbx
	movl %edi, %ebx
	movl %edi, %ecx
	ADDRESS(first_choice, %rdi)
	ADDRESS(second_choice, %rsi)
	ADDRESS(third_choice, %rdx)
	call choose
	jmp *%rax

first_choice:
	ADDRESS(last_choice, %rdi)
	call remember
second_choice:
	movl %ebx, %edi
	call twice
	popq %rbx
	ret
last_choice:
	call forget
third_choice:
	movl %ebx, %edi
	call thrice
	popq %rbx
	ret
	.section .note.GNU-stack,"",@progbits
