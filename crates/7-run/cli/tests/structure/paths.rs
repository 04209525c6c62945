//! The paths in a source, but for those that only tests have.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A module's name, or an item's, from the crate's root on.
pub type ModulePath = Vec<String>;

/// The paths in a file that is this module, from the crate's root on, and whether each is surely one of this crate: others may
/// start with the name of a crate, or of an item.
pub fn of(file: &syn::File, module: &[String]) -> Vec<(ModulePath, bool)> {
    let mut uses = Uses { module: module.to_vec(), paths: Vec::new() };
    uses.visit_file(file);
    uses.paths
}

/// Whether only tests have what bears these attributes.
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |a: &syn::Attribute| {
        a.path().is_ident("cfg")
            && a.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

/// Goes through a file; collects the paths in it from the crate's root on, and whether each is surely one of this crate.
struct Uses {
    /// The module that the visit is in.
    module: ModulePath,
    paths: Vec<(ModulePath, bool)>,
}

impl Uses {
    fn add(&mut self, names: &[String]) {
        let mut path = self.module.clone();
        let mut sure = true;
        let mut names = names.iter().map(String::as_str).peekable();
        match names.next() {
            Some("crate") => path.clear(),
            Some("self") => {}
            Some("super") => {
                path.pop();
                while names.next_if_eq(&"super").is_some() {
                    path.pop();
                }
            }
            Some(name) => {
                path.push(name.to_owned());
                sure = false;
            }
            None => return,
        }
        path.extend(names.map(str::to_owned));
        self.paths.push((path, sure));
    }

    fn add_tree(&mut self, names: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                names.push(path.ident.to_string());
                self.add_tree(names, &path.tree);
                names.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(names, tree)),
            syn::UseTree::Name(syn::UseName { ident })
            | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
                names.push(ident.to_string());
                self.add(names);
                names.pop();
            }
            syn::UseTree::Glob(_) => self.add(names),
        }
    }

    /// Paths among the words of a macro.
    fn add_words(&mut self, words: TokenStream) {
        let mut names: Vec<String> = Vec::new();
        let mut goes_on = false;
        for word in words {
            match word {
                TokenTree::Ident(name) => {
                    if !goes_on {
                        self.add(&std::mem::take(&mut names));
                    }
                    names.push(name.to_string());
                    goes_on = false;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => goes_on = true,
                other => {
                    self.add(&std::mem::take(&mut names));
                    goes_on = false;
                    if let TokenTree::Group(group) = other {
                        self.add_words(group.stream());
                    }
                }
            }
        }
        self.add(&names);
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            self.module.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, syn::Visibility::Inherited) && !is_test(&item.attrs) {
            self.add_tree(&mut Vec::new(), &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.add(&names);
        visit::visit_path(self, path);
    }

    /// `pub(crate)` uses nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, words: &'ast syn::Macro) {
        self.add_words(words.tokens.clone());
    }
}
