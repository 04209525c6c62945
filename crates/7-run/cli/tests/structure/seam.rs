//! The seam between instruction sets and everything else: `isa` alone names them and the crates that decode them, and of what it
//! knows the checker uses its own judgement only, which nobody else uses. Tests may name what they like: they hold machine code
//! against tools and processors.

use crate::paths;
use crate::sources::Source;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;

const ISA: &str = "crates/0-base/isa/";
/// It says which instruction set a file has, in ELF's words.
const IMAGE: &str = "crates/1-read/image/";
const CHECKER: &str = "crates/5-check/";
/// Folders of those whose beliefs the checker checks.
const WRITERS: [&str; 3] = ["crates/2-model/", "crates/3-decide/", "crates/4-write/"];

/// Parts of names of instruction sets and of the crates that decode them.
const NAMES: [&str; 4] = ["x86", "aarch64", "iced", "disarm64"];
/// What the checker may take from `isa`: its judgement, and what decoding gives.
const FOR_CHECKER: [&str; 4] = ["judgement", "Access", "Flow", "Inst"];
/// What the judgement may take from the rest of `isa`.
const FOR_JUDGEMENT: [&str; 9] =
    ["judgement", "Arch", "Access", "Flow", "Inst", "Sweep", "decode", "full", "WORD"];

/// Files and manifests that name an instruction set.
pub fn names_outside(sources: &[Source], manifests: &[(String, String)]) -> Vec<String> {
    let product = sources.iter().filter(|s| s.path.starts_with("crates/") && s.path.contains("/src/"));
    let product = product.filter(|s| ![ISA, IMAGE].iter().any(|allowed| s.path.starts_with(allowed)));
    let sources = product.filter(|s| !s.path.ends_with("/tests.rs") && names_any(&s.syntax));
    let manifests = manifests.iter().filter(|(path, text)| {
        let needed = text.split("[dev-dependencies]").next().unwrap_or_default();
        // Tests assemble code of the one that they run on.
        path.starts_with("crates/")
            && !path.starts_with(ISA)
            && needed.lines().any(|line| is_name(line.split(['.', ' ', '=']).next().unwrap_or_default()))
    });
    let found: BTreeSet<&str> =
        sources.map(|s| s.path.as_str()).chain(manifests.map(|(path, _)| path.as_str())).collect();
    found.iter().map(|path| format!("{path} names an instruction set; only isa may")).collect()
}

fn is_name(word: &str) -> bool {
    let word = word.to_lowercase();
    // `iced` is a part of other words.
    NAMES.iter().any(|name| if *name == "iced" { word.starts_with(name) } else { word.contains(name) })
}

fn names_any(file: &syn::File) -> bool {
    fn any(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(name) => is_name(&name.to_string()),
            TokenTree::Group(group) => any(group.stream()),
            _ => false,
        })
    }
    let is_test = |item: &syn::Item| match item {
        syn::Item::Mod(module) => paths::is_test(&module.attrs),
        _ => false,
    };
    file.items.iter().filter(|item| !is_test(item)).any(|item| any(item.to_token_stream()))
}

/// Uses of the checker's judgement by others, and of others' knowledge by the checker and its judgement.
pub fn mixed_judgements(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources.iter().filter(|s| s.path.contains("/src/") && !s.path.ends_with("/tests.rs")) {
        let in_judgement = source.path.starts_with(ISA) && source.path.contains("/judgement/");
        let module = if source.path.starts_with(ISA) { module(&source.path) } else { Vec::new() };
        for (path, _) in paths::of(&source.syntax, &module) {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            let isa = names.iter().position(|name| *name == "afterlink_isa").map(|at| &names[at + 1..]);
            let is_wrong = match isa {
                _ if in_judgement => takes_from_others(&names),
                Some(isa) if source.path.starts_with(CHECKER) => {
                    !isa.first().is_none_or(|n| FOR_CHECKER.contains(n))
                }
                Some(isa) => {
                    WRITERS.iter().any(|folder| source.path.starts_with(folder)) && isa.contains(&"judgement")
                }
                // Passing it on would be using it; what the modules declare is no path.
                None => source.path.starts_with(ISA) && names.contains(&"judgement"),
            };
            if is_wrong {
                violations.push(format!("{} uses {}", source.path, names.join("::")));
            }
        }
    }
    violations
}

/// The module of a source of `isa`.
fn module(path: &str) -> Vec<String> {
    let path = path.trim_start_matches(ISA).trim_start_matches("src/").trim_end_matches(".rs");
    path.trim_end_matches("lib")
        .trim_end_matches("/mod")
        .split('/')
        .filter(|n| !n.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether a path of the judgement, from the root of `isa` on, leads to something else there.
fn takes_from_others(names: &[&str]) -> bool {
    let inside = match names {
        ["x86_64" | "aarch64", rest @ ..] => rest,
        ["encoding" | "effects" | "semantics" | "counter", ..] => return true,
        [first, ..] if first.starts_with(char::is_uppercase) => names,
        _ => return false,
    };
    inside.first().is_some_and(|name| !FOR_JUDGEMENT.contains(name))
}
