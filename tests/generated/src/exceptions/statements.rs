//! Random statements about exceptions. Everything is done to the unsigned `x`, without undefined behaviour.

use std::fmt::Write;

use afterlink_hostile::random::Random;

use super::Promise;

/// The body of a function that is being drawn.
pub(super) struct Body<'a> {
    random: &'a mut Random,
    promises: &'a [Promise],
    /// Classes that stand in front of the function.
    classes: String,
    /// Numbers names within the function.
    names: usize,
}

/// What is thrown, with the place of its value for `VALUE`.
const THROWN: [&str; 11] = [
    "(int)(VALUE & 0xffff)",
    "(unsigned)(VALUE)",
    "Base(VALUE)",
    "Left(VALUE)",
    "Both(VALUE)",
    "Wide(VALUE)",
    "Colour((VALUE) % 3)",
    "Local{VALUE}",
    "std::runtime_error(\"wrong\")",
    "std::bad_alloc()",
    "\"text\"",
];

/// What is caught, with an expression for what was caught.
const CAUGHT: [(&str, &str); 13] = [
    ("int v", "unsigned(v)"),
    ("unsigned &v", "v++"),
    ("Base &e", "e.get()"),
    ("const Left &e", "e.get()"),
    ("Right &e", "e.get()"),
    ("const Both &e", "e.value"),
    ("Base e", "e.get()"),
    ("Wide &w", "w.values[x % 40]"),
    ("Colour c", "unsigned(c)"),
    ("const Local &l", "l.value"),
    ("std::exception &e", "(unsigned)std::strlen(e.what()) * 0"),
    ("const std::runtime_error &e", "unsigned(e.what()[0])"),
    ("const char *s", "unsigned(s[1])"),
];

impl<'a> Body<'a> {
    pub(super) fn new(random: &'a mut Random, promises: &'a [Promise]) -> Self {
        Self { random, promises, classes: String::new(), names: 0 }
    }

    pub(super) fn classes(self) -> String {
        self.classes
    }

    fn name(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    fn chance(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn value(&mut self) -> String {
        let number = self.random.number() >> 44;
        match self.random.below(5) {
            0 => format!("{number}u"),
            1 => format!("(x + {number}u)"),
            2 => format!("(x >> {})", 1 + self.random.below(15)),
            3 => format!("mix(x, {number}u)"),
            _ => "x".to_owned(),
        }
    }

    fn condition(&mut self) -> String {
        let (value, n) = (self.value(), 2 + self.random.below(5));
        match self.random.below(4) {
            0 => format!("{value} & {}", 1 << self.random.below(6)),
            1 => format!("__builtin_expect({value} % {n} == 0, 0)"),
            2 => format!("__builtin_expect({value} % {n} != 1, 1)"),
            _ => format!("{value} % {n} == 1"),
        }
    }

    /// A call of some function; those that may end the program are called in a child, and some in a thread.
    fn call(&mut self) -> String {
        let id = self.random.below(self.promises.len());
        let value = self.value();
        if self.promises[id] == Promise::Broken {
            return format!("in_child(f{id}, {value})");
        }
        match self.random.below(12) {
            0 => format!("through_frame(f{id}, {value})"),
            1 => format!("through_saved(f{id}, {value})"),
            2 => format!("in_thread(f{id}, {value})"),
            3 => format!("functions[{value} % count]({value})"),
            4 => self.virtual_call(id, &value),
            _ => format!("f{id}({value})"),
        }
    }

    fn virtual_call(&mut self, id: usize, value: &str) -> String {
        let name = self.name();
        writeln!(
            self.classes,
            "struct CallerNN_{name} : Caller {{ unsigned call(unsigned x) const override {{ Guard g(x); return f{id}(x) + 1; }} }};\nstatic CallerNN_{name} caller_NN_{name};"
        )
        .expect("strings can be written");
        format!(
            "[](unsigned x) {{ const Caller *volatile c = &caller_NN_{name}; return c->call(x); }}({value})"
        )
    }

    fn throw(&mut self) -> String {
        let value = self.value();
        let kind = self.random.below(THROWN.len());
        format!("throw {};", THROWN[kind].replace("VALUE", &value))
    }

    /// Several statements. Inside a handler what is handled can be thrown again.
    pub(super) fn block(&mut self, depth: usize, handles: bool) -> String {
        let count = 1 + self.random.below(3 + depth);
        (0..count).map(|_| self.statement(depth, handles) + "\n").collect()
    }

    fn statement(&mut self, depth: usize, handles: bool) -> String {
        let kind = if depth == 0 { self.random.below(9) } else { self.random.below(17) };
        match kind {
            0 => {
                let (call, condition) = (self.call(), self.condition());
                format!("if ({condition}) x ^= {call};")
            }
            1..=3 => format!("x = mix(x, {});", self.call()),
            4 => {
                let (condition, throw) = (self.condition(), self.throw());
                format!("if ({condition}) {throw}")
            }
            5 if handles => {
                let again = if self.chance(2) { "throw;" } else { "x += again(x);" };
                format!("if ({}) {again}", self.condition())
            }
            5 | 6 => self.local(),
            7 => format!("x += opaque({});", self.value()),
            8 => format!("if ({}) return {};", self.condition(), self.value()),
            9..=12 => self.attempt(depth, handles),
            13 => {
                let block = self.block(depth - 1, handles);
                let rounds = 1 + self.random.below(3);
                let name = self.name();
                format!("for (unsigned i{name} = 0; i{name} < {rounds}; i{name}++) {{\n{block}}}")
            }
            14 => {
                let (condition, first) = (self.condition(), self.block(depth - 1, handles));
                let second = self.block(depth - 1, handles);
                format!("if ({condition}) {{\n{first}}} else {{\n{second}}}")
            }
            15 => self.choice(depth, handles),
            _ => format!("{{\n{}}}", self.block(depth - 1, handles)),
        }
    }

    /// Something that has to be destroyed, or fails when it is made.
    fn local(&mut self) -> String {
        let (name, value) = (self.name(), self.value());
        match self.random.below(9) {
            0..=2 => format!("Guard guard{name}({value});"),
            3 => format!("Careful careful{name}({value});"),
            4 => format!("Touchy touchy{name}({value}); x += touchy{name}.key;"),
            5 => format!("Touchy touchy{name}[{}];", 1 + self.random.below(5)),
            6 => format!(
                "{{ Touchy *many{name} = new Touchy[{}]; delete[] many{name}; }}",
                1 + self.random.below(4)
            ),
            7 => format!("static Touchy once{name}({value}); x += once{name}.key;"),
            _ => format!("std::string text{name}({value} % 50, 'a'); x += text{name}.size();"),
        }
    }

    fn attempt(&mut self, depth: usize, handles: bool) -> String {
        let mut text = format!("try {{\n{}}}", self.block(depth - 1, handles));
        let (handlers, first) = (self.random.below(4), self.random.below(CAUGHT.len()));
        for i in 0..handlers {
            let (caught, value) = CAUGHT[(first + i * 5) % CAUGHT.len()];
            let block = self.block(depth - 1, true);
            write!(text, " catch ({caught}) {{\nx = mix(x, {value});\n{block}}}")
                .expect("strings can be written");
        }
        if handlers == 0 || self.chance(2) {
            let block = self.block(depth - 1, true);
            write!(text, " catch (...) {{\n{block}}}").expect("strings can be written");
        }
        if self.chance(8) { self.kept(&text) } else { text }
    }

    /// What is caught is kept, and thrown later.
    fn kept(&mut self, attempt: &str) -> String {
        let (name, call) = (self.name(), self.call());
        format!(
            "std::exception_ptr kept{name};\ntry {{ x += {call}; }} catch (...) {{ kept{name} = std::current_exception(); }}\n{attempt}\nif (kept{name} && ({})) std::rethrow_exception(kept{name});",
            self.condition()
        )
    }

    fn choice(&mut self, depth: usize, handles: bool) -> String {
        let (value, count) = (self.value(), 3 + self.random.below(6));
        let cases: String = (0..count)
            .map(|i| {
                let end = if self.chance(4) { "" } else { "break;" };
                let statement = self.statement(depth - 1, handles);
                format!("case {i}: {{ {statement} }} {end}\n")
            })
            .collect();
        format!("switch ({value} % {}) {{\n{cases}default: x++;\n}}", count + 1)
    }
}
