//! How long files and functions are.

use crate::sources::Source;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const FILE_MAX: usize = 800;
/// From the line with the name to the closing brace.
const FUNCTION_MAX: usize = 60;

pub fn long_files(sources: &[Source]) -> Vec<String> {
    let lines = sources.iter().map(|s| (s, s.text.lines().count()));
    lines
        .filter(|l| l.1 > FILE_MAX)
        .map(|(source, lines)| format!("{} has {lines} lines", source.path))
        .collect()
}

pub fn long_functions(sources: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in sources {
        let mut functions = Functions { path: &source.path, long: Vec::new() };
        functions.visit_file(&source.syntax);
        violations.extend(functions.long);
    }
    violations
}

/// Goes through a file; collects the functions that are too long.
struct Functions<'a> {
    path: &'a str,
    long: Vec<String>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, end: Span) {
        let start = signature.span().start().line;
        let lines = end.end().line + 1 - start;
        if lines > FUNCTION_MAX {
            self.long.push(format!("{} {}: {lines} lines from line {start} on", self.path, signature.ident));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block.span());
        }
        visit::visit_trait_item_fn(self, function);
    }
}
