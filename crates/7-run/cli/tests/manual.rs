//! Every command has a man page, and the shells know it.

use std::process::Command;

#[test]
fn every_command_has_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_afterlink")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["manual", directory.path().to_str().unwrap()]);
    let help = run(&["-h"]);
    let list = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let commands: Vec<&str> = list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|&name| name != "help")
        .collect();
    assert!(commands.len() >= 10, "{help}");
    let bash = std::fs::read_to_string(directory.path().join("completions/afterlink.bash")).unwrap();
    for name in commands {
        let page = directory.path().join(format!("man/man1/afterlink-{name}.1"));
        let page = std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(page.contains(".SH OPTIONS") || page.contains(".SH SUBCOMMANDS"), "{name}");
        assert!(bash.contains(&format!("afterlink__{name}")) || bash.contains(name), "{name}");
    }
}
