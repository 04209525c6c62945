//! What is asked of afterlink, told by the input itself: the seven bytes of an ELF header that mean nothing (`EI_PAD`)
//! choose it, so that a fuzzer varies the job as it varies the file, and a file alone repeats a run.

use std::ops::Range;

use afterlink_core::counter_file::{HEADER_SIZE, MAGIC};
use afterlink_pipeline::{
    BlockOrder, FunctionOrder, InstrumentOptions, LayoutOptions, OptimizeOptions, Scope, Split,
};
use afterlink_profile::Profile;

use crate::random::Random;
use crate::readers::assemble_counter_file;

/// Where the bytes stand that choose the job.
pub const CHOICE: Range<usize> = 9..16;

/// What to do with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// All code in random orders.
    Shuffle,
    /// Counters are added.
    Instrument,
    /// Counters are added, filled with random counts, and the program is laid out by them.
    Optimize,
}

/// The job that a file chooses, and a source of everything random in it.
pub fn chosen(input: &[u8]) -> (Job, Random) {
    let choice = input.get(CHOICE).unwrap_or(&[0; 7]);
    let job = match choice[0] % 4 {
        0 | 3 => Job::Shuffle,
        1 => Job::Instrument,
        _ => Job::Optimize,
    };
    let mut seed = [0; 8];
    seed[..7].copy_from_slice(choice);
    (job, Random::new(u64::from_le_bytes(seed)))
}

/// Lets `seed` choose the job of a file. The old code gets no traps: where a relocation is lost, something may still lead there.
pub fn choose(input: &mut [u8], seed: u64) {
    let mut choice = Random::new(seed).number().to_le_bytes();
    choice[0] &= 0x7f;
    input.iter_mut().skip(CHOICE.start).zip(&choice[..CHOICE.len()]).for_each(|(byte, new)| *byte = *new);
}

/// Options that move all code, in an order that depends on `seed` only.
pub fn random_layout(seed: u64) -> OptimizeOptions {
    OptimizeOptions {
        layout: LayoutOptions {
            scope: Scope::All,
            order_blocks: BlockOrder::Random,
            order_functions: FunctionOrder::Random,
            split: Split::Random,
            seed,
            check_passes: true,
            ..LayoutOptions::default()
        },
        ..OptimizeOptions::default()
    }
}

/// Any options at all; those that need a profile only with one. The highest bit of the choice fills the old code with traps.
pub fn any_layout(input: &[u8], random: &mut Random, profiled: bool) -> OptimizeOptions {
    let mut options = random_layout(random.number());
    let layout = &mut options.layout;
    layout.order_blocks = *random.pick(&[BlockOrder::Random, BlockOrder::Reverse, BlockOrder::Input]);
    layout.order_functions =
        *random.pick(&[FunctionOrder::Random, FunctionOrder::Reverse, FunctionOrder::Input]);
    layout.split = *random.pick(&[Split::Random, Split::None, Split::HotCold]);
    if profiled {
        layout.order_blocks = *random.pick(&[BlockOrder::ExtTsp, BlockOrder::ExtTsp, layout.order_blocks]);
        layout.order_functions =
            *random.pick(&[FunctionOrder::Cdsort, FunctionOrder::Hfsort, layout.order_functions]);
        layout.scope = *random.pick(&[Scope::All, Scope::Hot]);
    }
    layout.function_alignment = Some(1 << random.below(7));
    options.trap_old_code = input.get(CHOICE.start).is_some_and(|byte| byte & 0x80 != 0);
    options
}

/// Options to add counters with.
pub fn any_counters(random: &mut Random) -> InstrumentOptions {
    let path = *random.pick(&["/dev/null/c", "/dev/null/a/longer/path/to/the/file/that/is/counted/into"]);
    InstrumentOptions {
        count_targets: true,
        counter_file: path.as_bytes().to_vec(),
        ..InstrumentOptions::default()
    }
}

/// The profile of a run that nobody made: the counters of an instrumented program, filled at random.
/// `None` if the program has no counters.
pub fn random_profile(instrumented: &[u8], random: &mut Random) -> Option<Profile> {
    // The start-up code holds the magic too.
    let mut starts = instrumented.windows(MAGIC.len()).enumerate().filter(|(_, bytes)| **bytes == MAGIC);
    let mut counts = [0; 64];
    for count in counts.chunks_exact_mut(8) {
        let bits = random.below(34);
        count.copy_from_slice(&(random.number() & ((1 << bits) - 1)).to_le_bytes());
    }
    starts.find_map(|(start, _)| {
        let header = instrumented[start..].get(..HEADER_SIZE as usize)?;
        let size = u64::from_le_bytes(header[24..32].try_into().expect("eight bytes"));
        let description =
            instrumented[start..].get(HEADER_SIZE as usize..)?.get(..usize::try_from(size).ok()?)?;
        afterlink_ingest::read(&assemble_counter_file(description, &counts)?).ok()
    })
}
