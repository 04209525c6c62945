//! Every variant of every case in every mode. `cargo test -p afterlink-testkit --test cases -- jump_table` runs those whose
//! name has `jump_table` in it.

use libtest_mimic::{Arguments, Failed, Trial};

use afterlink_testkit::modes::check_variant;
use afterlink_testkit::plan::read_cases;

fn main() {
    let mut trials = Vec::new();
    for case in read_cases() {
        for variant in case.plan.variants() {
            let (case, name) = (case.clone(), format!("{}/{}", case.name, variant.name()));
            trials.push(Trial::test(name, move || {
                let faults = check_variant(&case, &variant);
                if faults.is_empty() { Ok(()) } else { Err(Failed::from(faults.join("\n"))) }
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
