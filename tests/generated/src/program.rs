//! Puts pieces together to a program.

use std::fmt::Write;

use afterlink_hostile::random::Random;

use crate::pieces::{PIECES, Piece};
use crate::settings::Settings;
use crate::sheet::Sheet;

/// What every file of a program begins with.
const HEADER: &str = r#"#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif
#define ARRAY(a) (sizeof(a) / sizeof *(a))
typedef unsigned function(unsigned);
static inline unsigned mix(unsigned sum, unsigned value) { return (sum ^ value) * 0x01000193u + (sum >> 13); }
static inline unsigned opaque(unsigned value) { __asm__ volatile("" : "+r"(value)); return value; }
static inline uintptr_t opaque_word(uintptr_t value) { __asm__ volatile("" : "+r"(value)); return value; }
/* What calls may still be made: pieces call each other, and would never end. */
extern int fuel;
#define CALL(piece, argument) (fuel-- > 0 ? piece(argument) : (argument))
"#;

/// What the assembly file begins with.
const ASSEMBLY_HEADER: &str = r#"
#if defined(__CET__) && (__CET__ & 1)
#define ENDBR endbr64
#else
#define ENDBR
#endif
	.text
	.macro function name
	.text
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	ENDBR
	.endm
	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm
"#;

/// Sources, and what else compiler and linker need to be told.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Names and texts.
    pub files: Vec<(String, String)>,
    pub options: Vec<&'static str>,
    /// The pieces in it, by number.
    pub pieces: Vec<&'static str>,
}

/// Draws a program of pieces that fit the settings and are not in `without`.
pub fn generate(random: &mut Random, settings: &Settings, only: &[String], without: &[String]) -> Program {
    let allowed = |piece: &&Piece| {
        (piece.fits)(settings)
            && (only.is_empty() || only.iter().any(|name| name == piece.name))
            && !without.iter().any(|name| name == piece.name)
    };
    let fitting: Vec<&Piece> = PIECES.iter().filter(allowed).collect();
    let mut program = Program::default();
    let mut bodies = vec![String::new(); 1 + random.below(3)];
    let mut assembly = String::new();
    let mut declarations = String::new();
    let mut callable = Vec::new();
    let count = if fitting.is_empty() { 0 } else { 4 + random.below(14) };
    for id in 0..count {
        let piece = *random.pick(&fitting);
        let mut sheet = Sheet {
            id,
            random,
            settings,
            callable: &callable,
            c: String::new(),
            assembly: String::new(),
            options: Vec::new(),
        };
        (piece.write)(&mut sheet);
        let Sheet { c, assembly: more, options, .. } = sheet;
        let body = random.below(bodies.len());
        writeln!(bodies[body], "/* {id}: {} */\n{c}", piece.name).expect("strings can be written");
        writeln!(assembly, "/* {id}: {} */\n{more}", piece.name).expect("strings can be written");
        writeln!(declarations, "unsigned piece_{id}(unsigned x);").expect("strings can be written");
        program.options.extend(options);
        program.pieces.push(piece.name);
        callable.push(id);
    }
    program.options.sort_unstable();
    program.options.dedup();
    let header = format!("{HEADER}{declarations}");
    let main = main_of(count, random);
    program.files = bodies
        .into_iter()
        .enumerate()
        .map(|(i, body)| (format!("part{i}.c"), format!("#include \"program.h\"\n{body}")))
        .collect();
    program.files.push(("program.h".to_owned(), header));
    program.files.push(("main.c".to_owned(), main));
    let note = "\t.section .note.GNU-stack,\"\",@progbits\n";
    program.files.push(("functions.S".to_owned(), format!("{ASSEMBLY_HEADER}{assembly}{note}")));
    program
}

/// Every piece in turn, again and again; one line for each in the first round, so that a difference shows where it begins.
fn main_of(count: usize, random: &mut Random) -> String {
    let start = random.number() as u32;
    let names: String = (0..count).map(|id| format!("piece_{id}, ")).collect();
    format!(
        r#"#include "program.h"
int fuel;
int main(void) {{
    static function *const pieces[] = {{{names}}};
    unsigned sum = {start}u;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (unsigned round = 0; round < 25; round++) {{
        for (unsigned i = 0; i < ARRAY(pieces); i++) {{
            fuel = 30;
            sum = mix(sum, pieces[i](sum));
            if (round == 0)
                printf("%u %08x\n", i, sum);
        }}
        printf("round %u %08x\n", round, sum);
    }}
    return sum & 63;
}}
"#
    )
}
