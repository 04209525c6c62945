/* Functions that begin a few bytes behind one another and end together: at the first one's old entry is no room for a jump. */
	.text
	.macro begin name
	.globl \name
	.type \name, @function
\name:
	.endm

/* Three entries, three and six bytes apart. */
	.p2align 4
begin add_mix_roll
	.cfi_startproc
	addl $5, %edi
begin mix_roll
	xorl $0x1234567, %edi
begin roll
	movl %edi, %eax
	roll $7, %eax
	testl $64, %eax
	je 1f
	call from_c
1:	ret
	.cfi_endproc
	.size roll, . - roll
	.size mix_roll, . - mix_roll
	.size add_mix_roll, . - add_mix_roll

/* The first has no type, the second no size. */
	.p2align 4
	.globl typeless
typeless:
	.cfi_startproc
	notl %edi
	.globl sizeless
	.type sizeless, @function
sizeless:
	leal 9(%rdi,%rdi,2), %eax
	ret
	.cfi_endproc
	.size typeless, . - typeless

/* A label, which is no function, two bytes behind the entry. */
	.p2align 4
begin before_label
	.cfi_startproc
	negl %edi
	.globl label
label:
	imull $11, %edi, %eax
	cmpl $77, %eax
	ja 1f
	notl %eax
1:	ret
	.cfi_endproc
	.size before_label, . - before_label

/* An unwind entry and labels are all that tells. */
	.p2align 4
	.globl bare, bare_label
bare:
	.cfi_startproc
	decl %edi
bare_label:
	imull $19, %edi, %eax
	ret
	.cfi_endproc

/* Here is room. */
	.p2align 4
begin far_entry
	.cfi_startproc
	imull $0x5555, %edi, %edi
begin near_entry
	leal 1(%rdi), %eax
	ret
	.cfi_endproc
	.size near_entry, . - near_entry
	.size far_entry, . - far_entry

/* Stays, since it reads its own code, and jumps to what has no room, in two bytes. */
	.p2align 4
begin reader
	.cfi_startproc
	movl reader(%rip), %eax
	testl %edi, %edi
	je 1f
	jmp .Lclose
1:	ret
	.cfi_endproc
	.size reader, . - reader
	.p2align 4
begin close
.Lclose:
	.cfi_startproc
	incl %edi
begin closer
	leal 3(%rdi,%rdi), %eax
	ret
	.cfi_endproc
	.size closer, . - closer
	.size close, . - close
	.section .note.GNU-stack, "", @progbits
