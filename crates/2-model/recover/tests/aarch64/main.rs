//! Programs for AArch64, by both compilers, are read and held against what binutils and the compilers' assembly say of them:
//! functions, blocks and where control goes from each, jump tables, calls and whole addresses.

mod build;
mod listing;
mod tables;

use afterlink_core::Refusal;
use afterlink_image::Image;
use afterlink_isa::Encoding;
use afterlink_program::{BlockId, FuncId, Function, Program, Role, Target, Terminator};
use build::{Built, RECIPES, build};
use listing::{Line, Listing};
use std::collections::{BTreeMap, BTreeSet};
use tables::Table;

#[test]
fn programs_of_both_compilers() {
    let mut sizes = BTreeSet::new();
    for recipe in &RECIPES {
        println!("{}", recipe.name);
        let built = build(recipe);
        let bytes = std::fs::read(&built.kept).unwrap();
        let image = Image::parse(&bytes).unwrap();
        let program = afterlink_recover::recover(&image).unwrap();
        let listing = Listing::read(&built.kept);
        let tables = tables::read(&built.assembly, &listing, &image);
        functions(&program, &listing);
        jump_tables(&program, &tables);
        for (id, function) in
            program.functions.iter().filter(|(_, f)| f.refusal != Some(Refusal::SpecialSection))
        {
            blocks(&program, id, function, &listing, &tables);
        }
        operands(&program, &listing);
        without_relocations(&program, &built);
        sizes.extend(tables.values().map(|table| table.entry));
    }
    assert_eq!(sizes, BTreeSet::from([1, 2, 4]), "entries of every size were met");
}

/// Every function is there, and none is refused without reason.
fn functions(program: &Program, listing: &Listing) {
    for (name, start, size) in &listing.functions {
        let found = program.function_at(afterlink_core::InputAddr(*start));
        let function = &program.functions[found.unwrap_or_else(|| panic!("{name} is not found"))];
        assert_eq!((function.entry().get(), function.ranges[0].size), (*start, *size), "{name}");
    }
    for name in [
        "small",
        "medium",
        "machine",
        "work",
        "by_pointer",
        "by_pointer_last",
        "chosen",
        "pick",
        "unlikely",
        "bits",
        "main",
        "pool",
        "_start",
    ] {
        assert!(program.functions.iter().any(|(_, function)| function.name == name), "{name}");
    }
    for (id, refusal) in program.refusals() {
        let wanted = match program.functions[id].name {
            "_init" | "_fini" => Refusal::SpecialSection,
            "pool" => Refusal::DataInCode,
            name => panic!("{name} {refusal}"),
        };
        assert_eq!(refusal, wanted, "{}", program.functions[id].name);
    }
}

fn jump_tables(program: &Program, tables: &BTreeMap<u64, Table>) {
    let mut found = BTreeSet::new();
    for (_, function) in program.functions.iter() {
        for table in &function.jump_tables {
            let start = table.base.get();
            let wanted =
                tables.get(&start).unwrap_or_else(|| panic!("{}: a table at {start:#x}?", function.name));
            let targets: Vec<u64> = table.targets.iter().map(|&b| function.blocks[b].input.get()).collect();
            assert_eq!(targets, wanted.targets, "{}: table {start:#x}", function.name);
            let format = table.format.expect("its entries are its own");
            assert_eq!(format.entry, wanted.entry, "{}: table {start:#x}", function.name);
            found.insert(start);
        }
    }
    assert_eq!(found, tables.keys().copied().collect(), "every table is found");
}

/// Blocks tile the function, and control goes from each to where objdump says.
fn blocks(
    program: &Program,
    id: FuncId,
    function: &Function,
    listing: &Listing,
    tables: &BTreeMap<u64, Table>,
) {
    let name = function.name;
    let mut end = function.entry();
    for (block_id, block) in function.blocks.iter() {
        if let Some(range) = function.ranges.iter().find(|r| r.start == block.input) {
            end = range.start;
        }
        assert_eq!(block.input, end, "{name}: no gap before a block");
        end = block.input_end();
        let lines: Vec<(u64, &Line)> =
            listing.lines.range(block.input.get()..end.get()).map(|(a, l)| (*a, l)).collect();
        let is_flow = |line: &Line| line.is_branch() || line.ends();
        let last = lines.iter().rposition(|(_, line)| is_flow(line));
        for (_, line) in &lines[..last.unwrap_or(lines.len())] {
            assert!(!is_flow(line), "{name}: {} inside of a block", line.mnemonic);
        }
        let goes_on = last.is_none_or(|last| {
            lines[last + 1..].iter().all(|(_, l)| l.mnemonic == "nop" || l.mnemonic.starts_with('.'))
        });
        assert!(goes_on, "{name}: code behind the end of a block");
        let wanted = match last {
            Some(last) => successors(function, end.get(), lines[last].1, listing, tables),
            None => BTreeSet::from([end.get()]),
        };
        let wanted = wanted.into_iter().filter(|&to| covers(function, to)).collect();
        assert_eq!(found_successors(function, block_id), wanted, "{name}: behind {:#x}", block.input);
        if let Some(last) =
            last.filter(|&l| lines[l].1.mnemonic == "b" && !covers(function, lines[l].1.target()))
        {
            tail_call(program, id, block_id, lines[last].1.target());
        }
    }
}

fn covers(function: &Function, address: u64) -> bool {
    function.ranges.iter().any(|r| r.contains(afterlink_core::InputAddr(address)))
}

fn found_successors(function: &Function, block: BlockId) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    function.for_each_successor(block, |to| {
        found.insert(function.blocks[to].input.get());
    });
    found
}

/// Where control goes from the last instruction of a block, as objdump and the assembly tell.
fn successors(
    function: &Function,
    end: u64,
    line: &Line,
    listing: &Listing,
    tables: &BTreeMap<u64, Table>,
) -> BTreeSet<u64> {
    match line.mnemonic.as_str() {
        "b" => BTreeSet::from([line.target()]),
        "ret" | "retaa" => BTreeSet::new(),
        "br" => {
            // Every table of these programs is used by one jump.
            let own = tables.values().filter(|t| covers(function, t.targets[0]));
            let own: Vec<BTreeSet<u64>> = own.map(|t| t.targets.iter().copied().collect()).collect();
            let jump = listing.lines.range(..end).rev().find(|(_, l)| l.mnemonic == "br").unwrap();
            let is_tail_call = !own.iter().any(|targets| !targets.is_empty()) || calls_last(listing, *jump.0);
            match own.len() {
                _ if is_tail_call => BTreeSet::new(),
                1 => own.into_iter().next().unwrap(),
                // Which of several it is must be told by what stands before it.
                _ => named_table(listing, *jump.0, tables),
            }
        }
        _ => BTreeSet::from([line.target(), end]),
    }
}

/// A `br` of a function with tables that is a tail call: right behind the end of the frame.
fn calls_last(listing: &Listing, jump: u64) -> bool {
    let before = listing.lines.range(..jump).rev().take(4);
    before.into_iter().any(|(_, line)| line.mnemonic == "ldp" && line.operands.contains("x29"))
}

/// The targets of the table that counts from where the `adr` in front of the jump points.
fn named_table(listing: &Listing, jump: u64, tables: &BTreeMap<u64, Table>) -> BTreeSet<u64> {
    let adr = listing.lines.range(..jump).rev().take(6).find(|(_, line)| line.mnemonic == "adr");
    let base = adr.map(|(_, line)| line.target());
    // Both compilers count from a place close to the first case: the nearest table in front of others.
    let near = |t: &&Table| {
        base.map_or(0, |base| t.targets.iter().map(|&to| to.abs_diff(base)).min().unwrap_or(u64::MAX))
    };
    tables.values().min_by_key(near).map(|t| t.targets.iter().copied().collect()).unwrap_or_default()
}

fn tail_call(program: &Program, id: FuncId, block: BlockId, wanted: u64) {
    let Terminator::Jump(target) = program.functions[id].blocks[block].terminator else {
        panic!("{}: no tail call at the end of {block:?}", program.functions[id].name)
    };
    assert!(!matches!(target, Target::Block(_)));
    assert_eq!(program.input_of(target, id).map(|a| a.get()), Some(wanted));
}

/// All operands by place: what they name.
fn operands_by_place(program: &Program) -> BTreeMap<u64, (Encoding, Role, u64)> {
    let mut operands = BTreeMap::new();
    for (id, function) in program.functions.iter() {
        for (_, block) in function.blocks.iter() {
            for operand in &function.operands[block.operands.range()] {
                let target = program.input_of(operand.target, id).unwrap();
                let place = block.input + u64::from(operand.at);
                operands.insert(place.get(), (operand.encoding, operand.role, target.get()));
            }
        }
    }
    operands
}

/// Calls go where objdump says, and whole addresses are what the kept relocations say.
fn operands(program: &Program, listing: &Listing) {
    let found = operands_by_place(program);
    let in_blocks = |at: u64| {
        program
            .function_at(afterlink_core::InputAddr(at))
            .is_some_and(|id| !program.functions[id].blocks.is_empty())
    };
    for (&at, line) in listing.lines.iter().filter(|(at, line)| line.mnemonic == "bl" && in_blocks(**at)) {
        assert_eq!(found.get(&at), Some(&(Encoding::Branch26, Role::Call, line.target())), "call at {at:#x}");
    }
    let mut pairs = 0;
    for (at, kind, named) in &listing.relocations {
        let is_part = kind.contains("_ADR_PREL_PG_HI21") || kind.contains("_ABS_LO12_NC");
        let mnemonic = listing.lines.get(at).map_or("", |line| line.mnemonic.as_str());
        // The linker makes one `adr` of a pair where that reaches.
        if !is_part || !in_blocks(*at) || matches!(mnemonic, "nop" | "adr") {
            continue;
        }
        let operand = found.get(at).map(|(_, _, target)| *target);
        assert_eq!(operand, Some(*named), "{kind} at {at:#x}");
        pairs += 1;
    }
    assert!(pairs > 100, "{pairs}");
}

/// The same program without kept relocations: what registers hold tells as much.
fn without_relocations(program: &Program, built: &Built) {
    let bytes = std::fs::read(&built.plain).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let plain = afterlink_recover::recover(&image).unwrap();
    assert_eq!(plain.functions.len(), program.functions.len());
    for ((_, a), (_, b)) in plain.functions.iter().zip(program.functions.iter()) {
        assert_eq!((a.name, a.refusal), (b.name, b.refusal));
        assert_eq!(a.jump_tables, b.jump_tables, "{}", a.name);
        let ends = |f: &Function| f.blocks.iter().map(|(_, b)| (b.input, b.size)).collect::<Vec<_>>();
        assert_eq!(ends(a), ends(b), "{}", a.name);
    }
    let (with, without) = (operands_by_place(program), operands_by_place(&plain));
    let lacking: Vec<_> = with.iter().filter(|(at, operand)| without.get(at) != Some(operand)).collect();
    println!("  {} operands, {} not without relocations", with.len(), lacking.len());
    assert!(lacking.is_empty(), "{lacking:x?}");
}
