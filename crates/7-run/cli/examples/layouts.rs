//! Lays a program out in several ways, some of which the command does not offer: `layouts PROGRAM PROFILE FOLDER LAYOUT …`. A layout is a list of
//! settings, `align=16,share=1`, or `default`; each program goes to FOLDER/LAYOUT under its own name. For studies.

use afterlink_pipeline::{
    BlockOrder, Check, FunctionOrder, LayoutOptions, OptimizeOptions, Scope, Silent, Split, pass_named,
};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, profile, folder, layouts @ ..] = &arguments[..] else {
        panic!("layouts PROGRAM PROFILE FOLDER LAYOUT …")
    };
    let input = std::fs::read(program).expect("the program can be read");
    let profile = std::fs::read(profile).expect("the profile can be read");
    for layout in layouts {
        let options = options(layout);
        let profiles = vec![afterlink_ingest::read(&profile).expect("fdata or counters")];
        let done = afterlink_pipeline::optimize(&input, profiles, &options, &Silent)
            .unwrap_or_else(|error| panic!("{layout}: {error}"));
        assert!(done.report.unproven_functions.is_empty(), "{layout} is not proven");
        let to = Path::new(folder).join(layout);
        std::fs::create_dir_all(&to).expect("the folder can be made");
        let to = to.join(Path::new(program).file_name().expect("a name"));
        std::fs::write(&to, &done.bytes).expect("the output can be written");
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o755)).expect("the output is ours");
        println!("{layout}: {} bytes hot", done.report.hot_bytes);
    }
}

fn options(layout: &str) -> OptimizeOptions {
    let mut options = OptimizeOptions { check: Check::Prove, ..OptimizeOptions::default() };
    let mut own = LayoutOptions::default();
    for setting in layout.split(',').filter(|setting| *setting != "default") {
        let (name, value) = setting.split_once('=').expect("NAME=VALUE");
        let number = || value.parse::<u64>().expect("a number");
        match (name, value) {
            ("align", _) => own.function_alignment = Some(number() as u32),
            ("share", _) => own.hot_share = Some(value.parse().expect("a share")),
            ("seed", _) => own.seed = number(),
            ("huge", _) => options.huge_pages = Some(number()),
            ("functions", "random") => own.order_functions = FunctionOrder::Random,
            ("functions", "input") => own.order_functions = FunctionOrder::Input,
            ("functions", "hfsort") => own.order_functions = FunctionOrder::Hfsort,
            ("blocks", "random") => own.order_blocks = BlockOrder::Random,
            ("blocks", "input") => own.order_blocks = BlockOrder::Input,
            ("blocks", "reverse") => own.order_blocks = BlockOrder::Reverse,
            ("split", "none") => own.split = Split::None,
            ("split", "random") => own.split = Split::Random,
            ("scope", "all") => own.scope = Scope::All,
            ("pass", name) => own.switches.turn(pass_named(name).expect("a pass"), true),
            ("skip", name) => own.switches.turn(pass_named(name).expect("a pass"), false),
            _ => panic!("{setting} is no setting"),
        }
    }
    OptimizeOptions { layout: own, ..options }
}
