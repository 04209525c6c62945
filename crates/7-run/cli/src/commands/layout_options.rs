//! Options that decide a layout, shared by the subcommands that lay out.

use afterlink_core::limits::{HUGE_PAGE, SECTION_ALIGNMENT};
use afterlink_core::{Error, Result};
use afterlink_pipeline::{
    BlockOrder, Check, FunctionOrder, LayoutOptions, OptimizeOptions, PASSES, Pass, Scope, Split, Switches,
    pass_named,
};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use regex::Regex;

#[derive(clap::Args, Clone)]
pub struct LayoutArgs {
    /// Which functions move: those that ran under the profile, or all.
    #[arg(long, value_enum, default_value = "hot")]
    scope: ScopeArg,
    /// Order of the basic blocks in a function.
    #[arg(long, value_enum, default_value = "ext-tsp")]
    order_blocks: BlockOrderArg,
    /// Order of the functions.
    #[arg(long, value_enum, default_value = "cdsort")]
    order_functions: FunctionOrderArg,
    /// Which blocks leave the hot part of their function.
    #[arg(long, value_enum, default_value = "hot-cold")]
    split: SplitArg,
    /// Start of the hot section: a multiple of so many bytes, a power of two from 64 to 2097152 (a huge page; the system
    /// maps one only if it is told to, and the file has a hole of up to that size).
    #[arg(long, default_value_t = 64, value_name = "BYTES")]
    hot_alignment: u64,
    /// Seed of random orders.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Leave out a step; may be given several times.
    #[arg(long = "skip-pass", value_name = "NAME", value_parser = passes())]
    skipped: Vec<&'static Pass>,
    /// Take a step that is left out unless it is asked for; may be given several times.
    #[arg(long = "pass", value_name = "NAME", value_parser = passes())]
    wanted: Vec<&'static Pass>,
    /// Hold the program against its own rules after each step (to find faults of afterlink).
    #[arg(long)]
    check_passes: bool,
    /// Leave functions whose names match this regular expression as they are.
    #[arg(long, value_name = "RE")]
    skip_functions: Option<String>,
    /// Threads to use; 0 for as many as there are processors, and never more.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

/// Options of whoever writes a program that is laid out.
#[derive(clap::Args, Clone)]
pub struct OutputArgs {
    /// Fill the old places of moved code with traps (to find jumps that nobody knew of).
    #[arg(long)]
    trap_old_code: bool,
    /// Leave debug information as it was, with the addresses that the code had. Otherwise it follows the code.
    #[arg(long)]
    keep_debug_info: bool,
    /// Take off the mark that -fcf-protection sets for shadow stacks, so that hot-inlining can put code in place of calls: unwinders take an address off a
    /// shadow stack for each frame, and no call has put one there. The program runs without a shadow stack then, also where the system has them.
    #[arg(long)]
    drop_shadow_stack: bool,
    /// Do not prove the output.
    #[arg(long)]
    no_verify: bool,
}

macro_rules! choices {
    ($name:ident => $target:ident { $($(#[$doc:meta])* $variant:ident),* $(,)? }) => {
        #[derive(Clone, Copy, Debug, ValueEnum)]
        enum $name { $($(#[$doc])* $variant),* }
        impl From<$name> for $target {
            fn from(arg: $name) -> Self {
                match arg { $($name::$variant => $target::$variant),* }
            }
        }
    };
}

choices!(ScopeArg => Scope {
    /// Functions that ran under the profile.
    Hot,
    /// Every function that is understood.
    All,
});
choices!(BlockOrderArg => BlockOrder {
    /// By the extended travelling-salesman score.
    ExtTsp,
    /// As they are.
    Input,
    /// Backwards, the entry first.
    Reverse,
    /// By --seed.
    Random,
});
choices!(FunctionOrderArg => FunctionOrder {
    /// Cache-directed sort.
    Cdsort,
    /// Call-chain clustering (C3).
    Hfsort,
    /// As they are.
    Input,
    /// Backwards.
    Reverse,
    /// By --seed.
    Random,
});
choices!(SplitArg => Split {
    /// Nothing.
    None,
    /// What never ran under the profile; of a function of which the profile counts calls only, what these show
    /// not to have run.
    HotCold,
    /// A random half, by --seed.
    Random,
});

impl LayoutArgs {
    /// The options for the pipeline; sets the number of threads for the whole process.
    pub fn options(&self) -> Result<OptimizeOptions> {
        // Threads that wait for a processor only look for work over and over.
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.min(most))
            .build_global()
            .map_err(|e| Error::new(format!("threads cannot be started: {e}")))?;
        let skip_functions = skip_functions(self.skip_functions.as_deref())?;
        Ok(OptimizeOptions {
            layout: LayoutOptions {
                scope: self.scope.into(),
                order_blocks: self.order_blocks.into(),
                order_functions: self.order_functions.into(),
                split: self.split.into(),
                hot_alignment: hot_alignment(self.hot_alignment)?,
                seed: self.seed,
                switches: self.switches(),
                check_passes: self.check_passes || cfg!(debug_assertions),
                ..LayoutOptions::default()
            },
            skip_functions,
            note: self.note(),
            ..OptimizeOptions::default()
        })
    }

    fn switches(&self) -> Switches {
        let mut switches = Switches::default();
        self.wanted.iter().for_each(|pass| switches.turn(pass, true));
        self.skipped.iter().for_each(|pass| switches.turn(pass, false));
        switches
    }

    /// What decided the layout, for the output's note: never the number of threads or a file's name.
    fn note(&self) -> String {
        let name = |v: clap::builder::PossibleValue| v.get_name().to_owned();
        let value = |v: Option<clap::builder::PossibleValue>| v.map(name).unwrap_or_default();
        let passes: String = self
            .switches()
            .turned()
            .map(|(pass, on)| format!("{}={pass}\n", if on { "pass" } else { "skip-pass" }))
            .collect();
        let hot = match self.hot_alignment {
            SECTION_ALIGNMENT => String::new(),
            bytes => format!("hot-alignment={bytes}\n"),
        };
        format!(
            "version={}\nscope={}\norder-blocks={}\norder-functions={}\nsplit={}\nseed={}\n{hot}{passes}",
            env!("CARGO_PKG_VERSION"),
            value(self.scope.to_possible_value()),
            value(self.order_blocks.to_possible_value()),
            value(self.order_functions.to_possible_value()),
            value(self.split.to_possible_value()),
            self.seed
        )
    }
}

impl OutputArgs {
    /// `options` with these.
    pub fn added_to(&self, options: OptimizeOptions) -> OptimizeOptions {
        let check = if self.no_verify { Check::Skip } else { Check::Prove };
        OptimizeOptions {
            trap_old_code: self.trap_old_code,
            keep_debug_info: self.keep_debug_info,
            drop_shadow_stack: self.drop_shadow_stack,
            check,
            ..options
        }
    }
}

/// Any pass, by its name.
pub fn passes() -> impl TypedValueParser<Value = &'static Pass> {
    let names = PASSES.map(|pass| PossibleValue::new(pass.name).help(pass.what));
    PossibleValuesParser::new(names)
        .map(|name| pass_named(&name).expect("clap lets only known names through"))
}

/// A section's alignment, if it is one.
fn hot_alignment(bytes: u64) -> Result<u64> {
    let is_one = bytes.is_power_of_two() && (SECTION_ALIGNMENT..=HUGE_PAGE).contains(&bytes);
    is_one.then_some(bytes).ok_or_else(|| {
        Error::new(format!("{bytes} is no alignment of a section"))
            .at("--hot-alignment")
            .next(format!("give a power of two from {} to {HUGE_PAGE}", SECTION_ALIGNMENT))
    })
}

/// The expression of `--skip-functions`.
pub fn skip_functions(expression: Option<&str>) -> Result<Option<Regex>> {
    functions(expression, "--skip-functions")
}

/// The functions that an option names.
pub fn functions(expression: Option<&str>, option: &str) -> Result<Option<Regex>> {
    expression.map(Regex::new).transpose().map_err(|e| {
        let text = e.to_string();
        let what = text.lines().last().unwrap_or_default();
        Error::new(what.strip_prefix("error: ").unwrap_or(what)).at(option).next("give a regular expression")
    })
}
