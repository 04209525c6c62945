//! What a thread is said to do next is held against what it does, instruction by instruction.

use crate::follow::Pages;
use crate::hold::{self, Held, Stop};
use afterlink_isa::Arch;
use afterlink_isa::ahead::{End, Jump, Way};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Instructions that are compared at each moment.
const LENGTH: u32 = 300;

/// Programs that are there wherever a Debian is, with something to do for longer than they are looked at.
fn subjects() -> Vec<Command> {
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {script}")]);
        command
    };
    vec![
        shell(
            r#"perl -e 'for (;;) { my %h; $h{$_ % 97} .= sprintf("%.3f,%d", $_ / 7, $_) for 1 .. 999; my @s = sort { $h{$a} cmp $h{$b} } keys %h; join("", @s) =~ /(\d+)x/ }'"#,
        ),
        shell("gzip -9 < /dev/zero"),
        shell(
            r#"mawk 'BEGIN { for (;;) { a[i % 100] = i * 1.5 ""; i++; n += length(a[i % 7]); split(a[i % 50], b, ".") } }'"#,
        ),
        shell("sh -c 'i=0; while :; do i=$((i + 1)); case $i in *7) j=$i;; esac; done'"),
    ]
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the thread really does: so many instructions, each with where it leads.
fn steps(held: &Held, count: u32) -> Vec<(u64, u64)> {
    let mut done = Vec::new();
    let mut at = held.instruction();
    while done.len() < count as usize {
        held.step();
        let to = held.instruction();
        // A repeated instruction stops behind each round.
        if to != at {
            done.push((at, to));
        }
        at = to;
    }
    done
}

fn check(held: &Held, way: &Way) -> Result<(), String> {
    let real = steps(held, way.instructions);
    let mut said = way.jumps.iter();
    let mut next = said.next();
    for (i, &(from, to)) in real.iter().enumerate() {
        if next.is_some_and(|jump| jump.from == from) {
            if next != Some(&Jump { from, to }) {
                return Err(format!("{i}: {from:#x} leads to {to:#x}, not as {next:x?} says"));
            }
            next = said.next();
        } else if !(1..=15).contains(&to.wrapping_sub(from)) {
            return Err(format!(
                "{i}: {from:#x} leads to {to:#x}, and is not in the way, where {next:x?} is next"
            ));
        }
    }
    Ok(())
}

#[test]
fn threads_do_what_was_said() {
    let arch = Arch::of_this_machine().unwrap();
    for mut command in subjects() {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let child = Running(child);
        std::thread::sleep(Duration::from_millis(100));
        let (mut long, mut unknown, mut jumps) = (0, 0, 0);
        for _ in 0..60 {
            std::thread::sleep(Duration::from_micros(700));
            let Stop::Held(held) = hold::ask(child.0.id()).unwrap().wait(Duration::from_secs(1)) else {
                panic!("{command:?}")
            };
            let (registers, float_registers) = held.registers(arch).unwrap();
            if arch.is_in_system_call(&registers) {
                continue;
            }
            let way = arch.way_ahead(&registers, &float_registers, &mut Pages::of(&held), LENGTH).unwrap();
            jumps += way.jumps.len();
            match way.end {
                End::Length => long += 1,
                End::Kernel => {}
                End::Unknown | End::NoCode => unknown += 1,
            }
            check(&held, &way).unwrap_or_else(|error| panic!("{command:?}: {error}\n{way:x?}"));
        }
        assert!(long > 3 * unknown, "{command:?}: {long} of full length, {unknown} end at something unknown");
        assert!(jumps > 500, "{command:?}: {jumps}");
    }
}
