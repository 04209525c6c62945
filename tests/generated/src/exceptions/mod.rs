//! Programs about exceptions, in C++: functions that call each other at random, in which anything is thrown, caught, passed on,
//! thrown again or turned into an end, with destructors on the way that say that they ran.
//!
//! `header.h` has what is thrown and what is destroyed, `main.cc` the calls that catch everything, threads and children, `frames.S`
//! frames without a personality; the functions between them are drawn here.

mod statements;

use std::fmt::Write;

use afterlink_hostile::random::Random;

use crate::program::Program;
use crate::settings::Settings;
use statements::Body;

/// Options that change what compilers make of exceptions, of which some are drawn.
const OPTIONS: [&[&str]; 4] = [
    // Lists of what a function may throw were the language's until C++17.
    &["-std=gnu++14"],
    &["-fnon-call-exceptions"],
    &["-fno-inline-functions"],
    &["-fvisibility=hidden"],
];

/// What a function promises about what it throws, with how it is called where the promise may end the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    None,
    /// `noexcept`, and it keeps the promise.
    Kept,
    /// `noexcept`, and nothing keeps it: called in a child only.
    Broken,
    /// A list of types, with `std::bad_exception` in it: what is thrown besides becomes that.
    List,
}

/// Draws a program.
pub fn generate(random: &mut Random, settings: &Settings) -> Program {
    let mut options = vec!["-pthread"];
    for row in OPTIONS {
        // GCC knows -fnon-call-exceptions; so does Clang, which leaves its tables as they are.
        if random.below(4) == 0 && (settings.is_gcc() || row[0] != "-fnon-call-exceptions") {
            options.push(*random.pick(row));
        }
    }
    let count = 6 + random.below(18);
    let promises: Vec<Promise> = (0..count)
        .map(|_| match random.below(8) {
            0 => Promise::Kept,
            1 => Promise::Broken,
            2 => Promise::List,
            _ => Promise::None,
        })
        .collect();
    let mut parts = vec![String::new(); 1 + random.below(3)];
    for id in 0..count {
        let text = function(random, id, &promises);
        let part = random.below(parts.len());
        parts[part].push_str(&text);
    }
    let declarations: String = (0..count).map(|id| declaration(id, promises[id]) + ";\n").collect();
    let header = concat!(include_str!("header.h"), "\n").to_owned() + &declarations;
    let callable = promises.iter().enumerate().filter(|(_, p)| **p != Promise::Broken);
    let names: String = callable.map(|(id, _)| format!("f{id}, ")).collect();
    let list = format!(
        "extern function *const functions[] = {{{names}}};\nextern const unsigned count = ARRAY(functions);\n"
    );
    parts[0].push_str(&list);
    let mut program = Program { options, ..Program::default() };
    program.files = parts
        .into_iter()
        .enumerate()
        .map(|(i, body)| {
            (format!("part{i}.cc"), format!("#include \"program.h\"\nextern function *const functions[];\nextern const unsigned count;\n{body}"))
        })
        .collect();
    program.files.push(("program.h".to_owned(), header));
    program.files.push(("main.cc".to_owned(), include_str!("main.cc").to_owned()));
    program.files.push(("frames.S".to_owned(), include_str!("frames.S").to_owned()));
    program
}

fn declaration(id: usize, promise: Promise) -> String {
    let promised = match promise {
        Promise::None => "",
        Promise::Kept | Promise::Broken => " noexcept",
        Promise::List => " THROWS(int, Left, std::bad_exception)",
    };
    format!("unsigned f{id}(unsigned x){promised}")
}

fn function(random: &mut Random, id: usize, promises: &[Promise]) -> String {
    let mut body = Body::new(random, promises);
    let statements = body.block(3, false);
    let classes = body.classes();
    let kept = promises[id] == Promise::Kept;
    let (begin, end) = if kept { ("try {\n", "} catch (...) { happens(4); }\n") } else { ("", "") };
    // A `noexcept` that is not kept must not be inlined into those who would keep it.
    let mut text = String::new();
    writeln!(
        text,
        "{classes}KEEP {} {{\nif (fuel-- <= 0) return x;\n{begin}{statements}{end}return x;\n}}",
        declaration(id, promises[id])
    )
    .expect("strings can be written");
    text.replace("NN", &id.to_string())
}
