//! Every variant of every case compiles, and does what its plan says, before afterlink has touched it.

use libtest_mimic::{Arguments, Failed, Trial};

use afterlink_testkit::modes::Bench;
use afterlink_testkit::plan::read_cases;

fn main() {
    let mut trials = Vec::new();
    for case in read_cases() {
        for variant in case.plan.variants() {
            let (case, name) = (case.clone(), format!("{}/{}", case.name, variant.name()));
            trials.push(Trial::test(name, move || match Bench::new(&case, &variant) {
                Ok(_) => Ok(()),
                Err(faults) => Err(Failed::from(faults.join("\n"))),
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
