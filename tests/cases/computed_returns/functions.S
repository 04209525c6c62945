/* Functions of whose code a part is only reached by way of an address that was worked out, without any indirect jump. */
#include "../assembly.h"
	.text

/* A distance is added to the own entry, and returned to. */
	function by_return
.Lentry:
	leaq .Lentry(%rip), %rax
	pushq %rax
	leaq distances(%rip), %rcx
	movzbl (%rcx,%rdi), %ecx
	addq %rcx, (%rsp)
	ret
.Lreturn0:
	leal 1(%rsi), %eax
	testl %eax, %eax
	js .Lreturn2
	ret
.Lreturn1:
	leal 5(%rsi,%rsi), %eax
	testl %eax, %eax
	js .Lreturn2
	ret
.Lreturn2:
	movl %esi, %eax
	notl %eax
	ret
	end by_return

/* The same by a call. */
	function by_call
.Lcall_entry:
	leaq .Lcall_entry(%rip), %rax
	pushq %rax
	leaq call_distances(%rip), %rcx
	movzbl (%rcx,%rdi), %ecx
	addq %rcx, (%rsp)
	popq %rax
	call *%rax
	ret
.Lcall0:
	leal 3(%rsi), %eax
	testl %eax, %eax
	js .Lcall1
	ret
.Lcall1:
	leal 7(%rsi,%rsi), %eax
	ret
	end by_call

	.section .rodata
distances:
	.byte .Lreturn0 - by_return, .Lreturn1 - by_return, .Lreturn2 - by_return
call_distances:
	.byte .Lcall0 - by_call, .Lcall1 - by_call
	.section .note.GNU-stack, "", @progbits
