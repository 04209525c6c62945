#include "assembly.h"
	.text
function exchange
	movl %edi, %eax
	testl %edx, %edx
	je 1f
	lock
1:	cmpxchgl %esi, shared(%rip)
	ret
end exchange

/* The immediate of the first mov is another mov when it is jumped into. */
function either_way
	movl %edi, %eax
	testl %esi, %esi
	jne .Linside + 1
.Linside:
	movl $0x9090f089, %ecx
	addl %edi, %eax
	ret
end either_way
	.section .note.GNU-stack,"",@progbits
