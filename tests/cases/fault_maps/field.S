#include "assembly.h"
	.text
	function field_or_default
.Lload:	mov (%rdi), %eax
	cmp %esi, %eax
	jle 1f
	lea (%rax, %rax, 2), %eax
	ret
.Lnull:	mov $-42, %eax
	ret
1:	add %esi, %eax
	ret
	end field_or_default

	# LLVM's assembler knows the section, and that nobody writes to it.
#ifdef __clang__
	.section .llvm_faultmaps, "a", @progbits
#else
	.section .llvm_faultmaps, "aw", @progbits
#endif
	.globl fault_maps
	.type fault_maps, @object
fault_maps:
	.byte 1, 0, 0, 0
	.long 1
	.quad field_or_default
	.long 1, 0
	.long 1, .Lload - field_or_default, .Lnull - field_or_default
	.size fault_maps, . - fault_maps
	.section .note.GNU-stack, "", @progbits
