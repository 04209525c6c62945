//! How a program is compiled and linked, drawn by a seed.

use afterlink_hostile::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    Gcc,
    Clang,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Pie,
    NoPie,
    Static,
    StaticPie,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub compiler: Compiler,
    pub level: &'static str,
    pub link: Link,
    /// Further options, to the compiler and the linker.
    pub extras: Vec<&'static str>,
}

/// Options of which some are drawn. Those that exclude each other stand in one row.
const BOTH: [&[&str]; 20] = [
    &["-fcf-protection=full", "-fcf-protection=branch", "-fcf-protection=none"],
    &["-ffunction-sections -Wl,--gc-sections", "-ffunction-sections"],
    &["-fno-omit-frame-pointer"],
    &["-fno-asynchronous-unwind-tables"],
    &["-fstack-protector-strong", "-fstack-protector-all"],
    &["-fno-jump-tables"],
    &["-fno-plt"],
    &["-fno-inline"],
    &["-funroll-loops"],
    &["-fexceptions"],
    &["-mno-red-zone"],
    &["-falign-functions=32", "-falign-functions=1"],
    &["-fzero-call-used-regs=used-gpr"],
    &["-fpatchable-function-entry=4", "-fpatchable-function-entry=6,2"],
    &["-Wl,-z,noseparate-code", "-Wl,-z,separate-code"],
    &["-Wl,-z,now", "-Wl,-z,lazy"],
    &["-Wl,--hash-style=sysv"],
    &["-Wl,--build-id=none"],
    &["-Wl,-z,max-page-size=0x200000"],
    &["-rdynamic"],
];

const GCC: [&[&str]; 8] = [
    &["-fsanitize=undefined -fsanitize-undefined-trap-on-error"],
    &["-mindirect-branch=thunk", "-mindirect-branch=thunk-inline"],
    &["-mindirect-branch-register", "-mfunction-return=thunk"],
    &["-flto -fno-toplevel-reorder"],
    &["-fno-reorder-blocks-and-partition"],
    &["-freorder-blocks-algorithm=simple"],
    &["-Wa,-mbranches-within-32B-boundaries"],
    &["-Wa,-mrelax-relocations=no"],
];

const CLANG: [&[&str]; 4] =
    [&["-fsanitize=undefined -fsanitize-trap=all"], &["-mretpoline"], &["-fno-integrated-as"], &["-fwrapv"]];

const LLD: [&[&str]; 2] = [&["-Wl,--icf=safe"], &["-Wl,--no-relax"]];

impl Settings {
    pub fn draw(random: &mut Random) -> Self {
        let compiler = *random.pick(&[Compiler::Gcc, Compiler::Clang]);
        let level = *random.pick(&["-O0", "-O1", "-O2", "-O2", "-O3", "-Os", "-Og"]);
        // Static programs bring all of a C library along, and take longer.
        let link = *random.pick(&[
            Link::Pie,
            Link::Pie,
            Link::Pie,
            Link::NoPie,
            Link::NoPie,
            Link::Static,
            Link::StaticPie,
        ]);
        let mut extras = Vec::new();
        let mut draw = |rows: &[&[&'static str]], one_in: usize, random: &mut Random| {
            for row in rows {
                if random.below(one_in) == 0 {
                    extras.push(*random.pick(row));
                }
            }
        };
        draw(&BOTH, 10, random);
        draw(if compiler == Compiler::Gcc { &GCC } else { &CLANG }, 14, random);
        if random.below(3) == 0 {
            draw(&[&["-fuse-ld=lld"]], 1, random);
            draw(&LLD, 10, random);
        }
        draw(&[&["-Wl,-z,pack-relative-relocs"]], 12, random);
        let mut settings = Self { compiler, level, link, extras };
        settings.drop_impossible();
        settings
    }

    pub fn has(&self, option: &str) -> bool {
        self.extras.iter().any(|extra| extra.contains(option))
    }

    /// What compilers and linkers don't take together.
    fn drop_impossible(&mut self) {
        let lld = self.has("fuse-ld=lld");
        let thunk = self.has("-mindirect-branch=") || self.has("-mfunction-return");
        let fixed = self.fixed();
        self.extras.retain(|extra| match *extra {
            "-flto -fno-toplevel-reorder" => !lld,
            extra if extra.starts_with("-fcf-protection") => !thunk,
            "-Wl,-z,pack-relative-relocs" => !fixed,
            _ => true,
        });
    }

    /// Does the program run at the addresses that it was linked for?
    pub fn fixed(&self) -> bool {
        matches!(self.link, Link::NoPie | Link::Static)
    }

    /// Do compiled functions have unwind tables?
    pub fn unwinds(&self) -> bool {
        !self.has("-fno-asynchronous-unwind-tables")
    }

    pub fn is_gcc(&self) -> bool {
        self.compiler == Compiler::Gcc
    }

    /// Name of the command, for C or for C++.
    pub fn command(&self, is_cpp: bool) -> &'static str {
        match (self.compiler, is_cpp) {
            (Compiler::Gcc, false) => "gcc-12",
            (Compiler::Gcc, true) => "g++-12",
            (Compiler::Clang, false) => "clang-22",
            (Compiler::Clang, true) => "clang++-22",
        }
    }

    /// Everything that compiler and linker are given.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![self.level];
        flags.extend(match self.link {
            Link::Pie => ["-fPIE", "-pie"],
            Link::NoPie => ["-fno-pie", "-no-pie"],
            Link::Static => ["-fno-pie", "-static"],
            Link::StaticPie => ["-fPIE", "-static-pie"],
        });
        flags.extend(self.extras.iter().flat_map(|extra| extra.split(' ')));
        if self.is_gcc() && self.has("fuse-ld=lld") {
            flags.push("-B/usr/lib/llvm-22/bin");
        }
        flags
    }
}
