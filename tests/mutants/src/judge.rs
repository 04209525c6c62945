//! Takes a mutant, says what becomes of it: caught by the checker, the same for everybody, or a hole.

use crate::limits;
use crate::subjects::Subject;
use afterlink_image::Image;
use afterlink_testkit::execute::{Outcome, run};
use afterlink_verify::{Options, verify};
use std::cell::OnceCell;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Caught,
    /// Accepted, and nobody can tell it from the output.
    Same,
    /// Accepted, and somebody can, in these words.
    Hole(String),
}

/// An output with what is seen of it.
pub struct Judge<'s> {
    pub subject: &'s Subject,
    input: Image<'s>,
    /// How the output runs.
    good: Outcome,
    /// What else can be seen of it, looked at when the first mutant asks for it.
    more: OnceCell<Vec<(String, Outcome)>>,
    folder: PathBuf,
}

/// For tools; what a mutant may use of the processor is limited apart.
const TIME: Duration = Duration::from_secs(20);

/// What strips and copies.
const EDITORS: [&[&str]; 3] = [&["strip"], &["llvm-strip-22"], &["objcopy"]];

/// What reads; `{}` is the file.
const READERS: [&[&str]; 3] = [
    &["eu-elflint", "--gnu-ld"],
    &["readelf", "-aW"],
    &[
        "gdb",
        "-nx",
        "-batch",
        "-ex",
        "break third",
        "-ex",
        "run",
        "-ex",
        "backtrace",
        "-ex",
        "info symbol $pc",
    ],
];

impl<'s> Judge<'s> {
    /// # Panics
    /// If the output is not what it must be: accepted, doing what the input does, alike in each run.
    pub fn new(subject: &'s Subject, folder: &Path) -> Self {
        let input = Image::parse(&subject.input).expect("a good input");
        let folder = folder.join(subject.name);
        std::fs::create_dir_all(&folder).expect("the work folder can be written");
        let good = Outcome { stdout: Vec::new(), stderr: Vec::new(), exit: 0 };
        let mut judge = Self { subject, input, good, more: OnceCell::new(), folder };
        assert!(judge.accepts(&subject.output), "{}: a good output is refused", subject.name);
        judge.good = judge.run(&judge.put(&subject.output, "program"));
        let again = judge.run(&judge.put(&subject.output, "program"));
        assert!(again == judge.good, "{}: the output runs differently each time", subject.name);
        let original = judge.run(&judge.put(&subject.input, "program"));
        // What the backtraces see depends on where code stands, and how many there are on counters and jumps.
        let portable = |o: &Outcome| -> Vec<String> {
            let text = o.stdout();
            let lines = text.lines().filter(|line| !line.starts_with("seen"));
            lines.map(|line| line.split(", steps").next().unwrap_or(line).to_owned()).collect()
        };
        let (wanted, found) = (portable(&original), portable(&judge.good));
        assert!(
            original.exit == judge.good.exit && wanted == found,
            "{}: {wanted:?} {found:?}",
            subject.name
        );
        judge
    }

    fn accepts(&self, bytes: &[u8]) -> bool {
        Image::parse(bytes).is_ok_and(|output| verify(&self.input, &output, &Options::default()).is_proven())
    }

    pub fn fate(&self, bytes: &[u8]) -> Fate {
        let accepted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.accepts(bytes)));
        match accepted {
            Err(_) => return Fate::Hole("the checker panics".to_owned()),
            Ok(false) => return Fate::Caught,
            Ok(true) => {}
        }
        let found = self.run(&self.put(bytes, "program"));
        let mut differs = Some((("run".to_owned(), found), ("run".to_owned(), self.good.clone())));
        differs = differs.filter(|(found, good)| found != good).or_else(|| {
            let good = self.more.get_or_init(|| self.observe(&self.subject.output).collect());
            self.observe(bytes).zip(good.clone()).find(|(found, good)| found != good)
        });
        let Some(((what, found), (_, good))) = differs else { return Fate::Same };
        let line = |o: &Outcome, other: &Outcome| -> String {
            let (own, other) = ([o.stdout(), o.stderr()].concat(), [other.stdout(), other.stderr()].concat());
            let new = own.lines().find(|line| !other.contains(line)).unwrap_or_default().to_owned();
            format!("{}, {new}", o.exit_text())
        };
        Fate::Hole(format!("{what}: {} / {}", line(&found, &good), line(&good, &found)))
    }

    fn put(&self, bytes: &[u8], name: &str) -> PathBuf {
        let path = self.folder.join(name);
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).expect("the work folder can be written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
        path
    }

    /// What can be seen of a program besides its own doing: what it does once edited, and what tools say.
    fn observe<'o>(&'o self, bytes: &'o [u8]) -> impl Iterator<Item = (String, Outcome)> + 'o {
        let edited = EDITORS.iter().map(|editor| {
            let path = self.put(bytes, "program");
            let outcome = self.tool(editor, &path);
            let what = format!("{}, then run", editor[0]);
            // Where the tool fails on the good output, its message is compared.
            if outcome.exit == 0 { (what, self.run(&path)) } else { (what, outcome) }
        });
        let read = READERS.iter().map(|reader| {
            let path = self.put(bytes, "program");
            let mut outcome = self.tool(reader, &path);
            if reader[0] == "readelf" {
                // What it shows are the fields, which differ; what it warns of is judged.
                outcome.stdout.clear();
            }
            (reader[0].to_owned(), outcome)
        });
        edited.chain(read)
    }

    fn run(&self, path: &Path) -> Outcome {
        let _ = std::fs::remove_file(&self.subject.counters);
        let mut command = Command::new(path);
        command.arg0("./program").env_clear().current_dir("/");
        limits::without_chance(&mut command);
        limits::limit(&mut command);
        self.outcome(&mut command)
    }

    fn tool(&self, words: &[&str], path: &Path) -> Outcome {
        // Left by a run as somebody else, it would be told by its name, which is not judged.
        let _ = std::fs::remove_file(&self.subject.counters);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(path).env("LC_ALL", "C").env("DEBUGINFOD_URLS", "");
        limits::without_chance(&mut command);
        self.outcome(&mut command)
    }

    /// A file that cannot even be started is told apart by its error.
    fn outcome(&self, command: &mut Command) -> Outcome {
        let started =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(command, "", &self.folder, TIME)));
        let none = Outcome { stdout: Vec::new(), stderr: b"cannot be started".to_vec(), exit: -2000 };
        let mut outcome = started.unwrap_or(none);
        for said in [&mut outcome.stdout, &mut outcome.stderr] {
            *said = without_counter_file(said);
        }
        outcome
    }
}

impl Drop for Judge<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.subject.counters);
    }
}

/// What a program says besides that its counter file cannot be used: whoever instruments it may name any file, and only the
/// output says which (`docs/verification.md`).
fn without_counter_file(said: &[u8]) -> Vec<u8> {
    let lines = said.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| !line.starts_with(b"afterlink: counter file ")).flatten().copied().collect()
}
