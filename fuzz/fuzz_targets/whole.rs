//! recover, lay out or count, emit and verify in one go. Functions that the checker does not accept are left alone, which is no fault
//! here; how much of each there is, is printed now and then.
//!
//! A program whose bytes are changed at random is hardly ever a program. So most changes are those of
//! [`Victim`], one telling number in one field, libFuzzer's own stay inside one part of the file, and only programs that
//! were rewritten and proven are changed further: damage would add up until nothing else is reached.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Mutex;

use afterlink_hostile::damage::Victim;
use afterlink_hostile::job::{CHOICE, Job};
use afterlink_hostile::random::Random;
use afterlink_hostile::whole::run_chosen;
use libfuzzer_sys::{Corpus, fuzz_mutator, fuzz_target, fuzzer_mutate};

#[global_allocator]
static ALLOCATOR: afterlink_fuzz::Counting = afterlink_fuzz::Counting;

static TALLY: Mutex<BTreeMap<(Job, &str), u64>> = Mutex::new(BTreeMap::new());

fuzz_target!(init: afterlink_fuzz::on_one_thread(), |bytes: &[u8]| -> Corpus {
    // The output is part of what is held in memory, and with counters it has room for them.
    let (job, name) = afterlink_fuzz::within(bytes, 16 << 20, 256, |bytes| {
        let (job, outcome) = run_chosen(bytes);
        (job, outcome.name())
    });
    let mut tally = TALLY.lock().expect("no run panics and goes on");
    *tally.entry((job, name)).or_default() += 1;
    let total: u64 = tally.values().sum();
    if total.is_power_of_two() && total >= 1 << 12 || total % (1 << 18) == 0 {
        eprintln!("outcomes of {total} runs:");
        tally.iter().for_each(|((job, name), count)| {
            eprintln!("{:>8.1} %  {job:?} {name}", 100.0 * *count as f64 / total as f64);
        });
    }
    if name == "proven" { Corpus::Keep } else { Corpus::Reject }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = Random::new(u64::from(seed));
    let way = random.below(16);
    if way < 2 && size > CHOICE.end {
        data[CHOICE].fill_with(|| random.number() as u8);
        return size;
    }
    let Some(victim) = Victim::of(data[..size].to_vec()).filter(|_| way > 2) else {
        return fuzzer_mutate(data, size, max_size);
    };
    if way < 9 {
        let part = victim.some_part(&mut random);
        let part = if part.is_empty() { &mut data[..size] } else { &mut data[part] };
        // What is left behind a shorter part is its old end.
        fuzzer_mutate(part, part.len(), part.len());
        return size;
    }
    let damaged = victim.with_one_fault(&mut random);
    let size = damaged.len().min(max_size);
    data[..size].copy_from_slice(&damaged[..size]);
    size
});
