//! A few hundred mutants, the same ones each time: none that `verify` accepts does anything else.

use afterlink_mutants::campaign;

const MUTANTS: u64 = 400;

#[test]
fn what_is_accepted_does_the_same() {
    let folder = afterlink_testkit::work_folder().join("mutants");
    let tally = campaign::run(&folder, (1, 0, MUTANTS), |_, _| true);
    println!("{} mutants, {} caught", tally.mutants, tally.caught);
    tally.same.iter().for_each(|(class, count)| println!("{count} accepted, and the same: {class}"));
    assert!(tally.holes.is_empty(), "{}", tally.holes.join("\n"));
    assert!(tally.caught * 10 > MUTANTS * 8, "only {} of {MUTANTS} mutants were caught", tally.caught);
}
