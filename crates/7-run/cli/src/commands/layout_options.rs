//! Options that decide a layout, shared by the subcommands that lay out.

use afterlink_core::{Error, Result};
use afterlink_pipeline::{BlockOrder, Check, FunctionOrder, LayoutOptions, OptimizeOptions, Scope, Split};
use clap::ValueEnum;
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
    /// Seed of random orders.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Leave functions whose names match this regular expression as they are.
    #[arg(long, value_name = "RE")]
    skip_functions: Option<String>,
    /// Fill the old places of moved code with traps (to find jumps that nobody knew of).
    #[arg(long)]
    trap_old_code: bool,
    /// Threads to use; 0 for as many as there are processors.
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
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
    /// What never ran under the profile; nothing of a function of which the profile counts calls only.
    HotCold,
    /// A random half, by --seed.
    Random,
});

impl LayoutArgs {
    /// The options for the pipeline; sets the number of threads for the whole process.
    pub fn options(&self) -> Result<OptimizeOptions> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .build_global()
            .map_err(|e| Error::new(format!("cannot start {} threads: {e}", self.threads)))?;
        let skip_functions = skip_functions(self.skip_functions.as_deref())?;
        Ok(OptimizeOptions {
            layout: LayoutOptions {
                scope: self.scope.into(),
                order_blocks: self.order_blocks.into(),
                order_functions: self.order_functions.into(),
                split: self.split.into(),
                seed: self.seed,
                ..LayoutOptions::default()
            },
            skip_functions,
            any_profile: false,
            trap_old_code: self.trap_old_code,
            check: if self.no_verify { Check::Skip } else { Check::Prove },
            note: self.note(),
        })
    }

    /// What decided the layout, for the output's note: never the number of threads or a file's name.
    fn note(&self) -> String {
        let name = |v: clap::builder::PossibleValue| v.get_name().to_owned();
        let value = |v: Option<clap::builder::PossibleValue>| v.map(name).unwrap_or_default();
        format!(
            "version={}\nscope={}\norder-blocks={}\norder-functions={}\nsplit={}\nseed={}\n",
            env!("CARGO_PKG_VERSION"),
            value(self.scope.to_possible_value()),
            value(self.order_blocks.to_possible_value()),
            value(self.order_functions.to_possible_value()),
            value(self.split.to_possible_value()),
            self.seed
        )
    }
}

/// The expression of `--skip-functions`.
pub fn skip_functions(expression: Option<&str>) -> Result<Option<Regex>> {
    expression.map(Regex::new).transpose().map_err(|e| {
        let text = e.to_string();
        let what = text.lines().last().unwrap_or_default();
        Error::new(what.strip_prefix("error: ").unwrap_or(what))
            .at("--skip-functions")
            .next("give a regular expression")
    })
}
